/* sample: text written by an export that takes a window of tokens and a length and gives logits. */
#include "runtime/philox.h"
#include "runtime/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PURPOSE_SAMPLE = 4, BYTES = 256, TOKENS = 200 };

typedef struct Sampler {
    Session *session;
    Export export;
    const PlanBuffer *window, *length, *logits; /* of its function for few records */
    unsigned char *window_values, *length_values;
    const unsigned char *logit_values;
    const DataWords *words; /* NULL: tokens are bytes */
    int64_t token_count;    /* that the text can have */
    int64_t capacity;       /* tokens of the window */
    Vec(int64_t) text;      /* the prompt and what follows */
    double temperature;
    int64_t keep; /* the likeliest tokens to draw from */
    double *chances;
} Sampler;

static bool is_window(const PlanBuffer *buffer) {
    return buffer->batch_axis == 0 && buffer->row_size == 1 && buffer->rank == 2 && tg_is_integer(buffer->dtype);
}
static bool is_length(const PlanBuffer *buffer) { return buffer->rank == 0 && tg_is_integer(buffer->dtype); }
static bool is_logits(const PlanBuffer *buffer) {
    return buffer->batch_axis == 0 && buffer->row_size == 1 && buffer->rank == 2 && tg_is_float(buffer->dtype);
}

/* The roles of the export's arguments and result, by their shapes. */
static bool find_roles(Sampler *sampler, const PlanFunc *func) {
    const TgPlan *plan = sampler->session->plan;
    TgExec *exec = sampler->session->exec;
    sampler->window = sampler->length = sampler->logits = NULL;
    for (uint32_t i = 0; i < func->input_count; i++) {
        uint32_t index = plan->inputs[func->input_first + i];
        const PlanBuffer *buffer = &plan->buffers[index];
        if (is_window(buffer) && sampler->window == NULL) {
            sampler->window = buffer;
            sampler->window_values = tg_exec_address(exec, index, 0);
        } else if (is_length(buffer) && sampler->length == NULL) {
            sampler->length = buffer;
            sampler->length_values = tg_exec_address(exec, index, 0);
        }
    }
    for (uint32_t i = 0; i < func->result_count && sampler->logits == NULL; i++) {
        uint32_t index = plan->results[func->result_first + i].buffer;
        if (!is_logits(&plan->buffers[index]))
            continue;
        sampler->logits = &plan->buffers[index];
        sampler->logit_values = tg_exec_address(exec, index, 0);
    }
    return func->input_count == 2 && sampler->window != NULL && sampler->length != NULL && sampler->logits != NULL;
}

static Status find_export(Sampler *sampler) {
    Session *session = sampler->session;
    const Options *options = session->options;
    const TgPlan *plan = session->plan;
    const char *name = options->arguments.count > 0 ? options->arguments.at[0] : NULL;
    if (options->arguments.count > 1)
        return tg_session_fail(session, TG_USAGE, "'sample' takes one export, then --prompt TEXT; '%s' is one more",
                               options->arguments.at[1]);
    if (name != NULL)
        TG_TRY(tg_predict_export(session, name, &sampler->export));
    for (uint32_t i = 0; i < plan->func_count; i++) {
        const PlanFunc *func = &plan->funcs[i];
        bool wanted = func->kind == PLAN_EXPORT && (name == NULL || func == sampler->export.few);
        if (wanted && find_roles(sampler, func)) {
            sampler->export.few = func;
            return TG_OK;
        }
    }
    return tg_session_fail(session, TG_MODEL,
                           "%s%s has no export to sample from: one with a window of tokens and a "
                           "length that gives logits, as in 'export fn next(tokens: i32[B, T], length: i32)'",
                           name != NULL ? name : "", name != NULL ? " in " : plan->source_path);
}

/* What the tokens stand for, from the weights or else the training text. */
static Status find_words(Sampler *sampler) {
    Session *session = sampler->session;
    const TgPlan *plan = session->plan;
    const PlanField *field = NULL;
    for (uint32_t i = 0; i < plan->field_count && field == NULL; i++)
        if (strcmp(plan->fields[i].reader, "text") == 0)
            field = &plan->fields[i];
    int64_t known = BYTES;
    if (field != NULL && strstr(field->options, "tokenizer=") != NULL) {
        sampler->words = tg_data_words(&session->files.vocabulary, field->name);
        if (sampler->words == NULL) {
            RecordSet set;
            TG_TRY(tg_session_train_set(session, &set));
            sampler->words = tg_data_words(&session->files.vocabulary, field->name);
        }
        known = sampler->words->count;
    }
    int64_t outputs = sampler->logits->dims[1];
    sampler->token_count = outputs < known ? outputs : known;
    return TG_OK;
}

/* ---- the prompt ---- */

static Status add_prompt(Sampler *sampler, const char *prompt) {
    Session *session = sampler->session;
    const unsigned char *at = (const unsigned char *)prompt, *end = at + strlen(prompt);
    while (at < end) {
        int length = sampler->words == NULL ? 1 : tg_utf8_length(at, end);
        const char *word = tg_arena_str(session->arena, (const char *)at, (size_t)(length > 0 ? length : 1));
        int64_t token = sampler->words == NULL ? *at : tg_data_word_place(sampler->words, word);
        if (length == 0 || token < 0 || token >= sampler->token_count)
            return tg_session_fail(session, TG_USAGE, "--prompt: the model was not trained with the character '%s'",
                                   word);
        tg_push(session->arena, &sampler->text, token);
        at += length;
    }
    if (sampler->text.count == 0)
        return tg_session_fail(session, TG_USAGE, "--prompt is empty: the model goes on from at least one character");
    return TG_OK;
}

static void add_token_text(const Sampler *sampler, int64_t token, Str *to) {
    char byte = (char)token;
    if (sampler->words == NULL)
        tg_str_add(to, &byte, 1);
    else
        tg_str_add(to, sampler->words->at[token], strlen(sampler->words->at[token]));
}

/* ---- one token ---- */

/* The last tokens of the text fill the window from its front; zeros follow. */
static void fill_window(Sampler *sampler) {
    int64_t count = sampler->text.count, first = count > sampler->capacity ? count - sampler->capacity : 0;
    for (int64_t i = 0; i < sampler->capacity; i++)
        tg_element_set(sampler->window->dtype, sampler->window_values, i,
                       first + i < count ? (double)sampler->text.at[first + i] : 0);
    tg_element_set(sampler->length->dtype, sampler->length_values, 0, (double)(count - first));
}

static double logit(const Sampler *sampler, int64_t token) {
    return tg_element_get(sampler->logits->dtype, sampler->logit_values, token);
}

static int64_t likeliest(const Sampler *sampler) {
    int64_t best = 0;
    for (int64_t i = 1; i < sampler->token_count; i++)
        if (logit(sampler, i) > logit(sampler, best))
            best = i;
    return best;
}

static int downwards(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The least logit among the `keep` highest. */
static double threshold(const Sampler *sampler) {
    if (sampler->keep >= sampler->token_count)
        return -INFINITY;
    for (int64_t i = 0; i < sampler->token_count; i++)
        sampler->chances[i] = logit(sampler, i);
    qsort(sampler->chances, (size_t)sampler->token_count, sizeof *sampler->chances, downwards);
    return sampler->chances[sampler->keep - 1];
}

/* A number of 0 <= x < 1 for the place in the text. */
static double uniform(const Sampler *sampler) {
    uint64_t place = sampler->text.count;
    Philox random = tg_philox(sampler->session->settings.seed,
                              (Philox){{(uint32_t)place, (uint32_t)(place >> 32), 0, PURPOSE_SAMPLE}});
    uint64_t bits = (uint64_t)random.word[1] << 32 | random.word[0];
    return (double)(bits >> 11) * 0x1p-53;
}

static int64_t draw(const Sampler *sampler) {
    int64_t best = likeliest(sampler);
    if (sampler->temperature == 0)
        return best;
    double least = threshold(sampler), most = logit(sampler, best), sum = 0;
    for (int64_t i = 0; i < sampler->token_count; i++) {
        double value = logit(sampler, i);
        sampler->chances[i] = value >= least ? exp((value - most) / sampler->temperature) : 0;
        sum += sampler->chances[i];
    }
    double left = uniform(sampler) * sum;
    for (int64_t i = 0; i < sampler->token_count; i++) {
        left -= sampler->chances[i];
        if (left < 0)
            return i;
    }
    return best;
}

static Status next_token(Sampler *sampler, int64_t *token) {
    Session *session = sampler->session;
    fill_window(sampler);
    TgScalars *scalars = tg_exec_scalars(session->exec);
    scalars->rows = 1;
    scalars->first_row = 0;
    tg_exec_run(session->exec, sampler->export.few, 0);
    for (int64_t i = 0; i < sampler->token_count; i++)
        if (isnan(logit(sampler, i)))
            return tg_session_fail(session, TG_NUMERIC, "the logits after token %u are not numbers",
                                   sampler->text.count);
    *token = draw(sampler);
    tg_push(session->arena, &sampler->text, *token);
    return TG_OK;
}

/* ---- the command ---- */

static Status read_temperature(Session *session, double *temperature) {
    const char *text = session->options->value[OPT_TEMPERATURE];
    *temperature = 1;
    if (text == NULL)
        return TG_OK;
    char *end;
    *temperature = strtod(text, &end);
    if (end != text && *end == '\0' && *temperature >= 0 && isfinite(*temperature))
        return TG_OK;
    return tg_session_fail(session, TG_USAGE, "--temperature: '%s' is not a number of 0 or more", text);
}

static Status open_sampler(Sampler *sampler) {
    Session *session = sampler->session;
    const Options *options = session->options;
    TG_TRY(read_temperature(session, &sampler->temperature));
    TG_TRY(tg_options_count(session->arena, options, OPT_TOP_K, 1, INT64_MAX, &sampler->keep, &session->why));
    TG_TRY(tg_session_start(session));
    TG_TRY(find_export(sampler));
    TG_TRY(tg_session_load_weights(session));
    TG_TRY(find_words(sampler));
    sampler->capacity = sampler->window->dims[1];
    sampler->chances = TG_ALLOC(session->arena, double, sampler->token_count);
    tg_session_set_builtin(session, "records", 1);
    tg_session_set_builtin(session, "lane_start", 1);
    tg_exec_compute_scalars(session->exec);
    return add_prompt(sampler, options->value[OPT_PROMPT] != NULL ? options->value[OPT_PROMPT] : "\n");
}

static Status print_json(Sampler *sampler, const char *prompt) {
    Session *session = sampler->session;
    Str text = tg_str(session->arena);
    json_t *tokens = json_array();
    for (uint32_t i = 0; i < sampler->text.count; i++) {
        add_token_text(sampler, sampler->text.at[i], &text);
        json_array_append_new(tokens, json_integer(sampler->text.at[i]));
    }
    json_t *as_text = json_stringn(text.text, text.length); /* bytes that are no UTF-8 are none */
    return tg_session_print_json(session, json_pack("{s:s, s:o, s:o}", "prompt", prompt, "text",
                                                    as_text != NULL ? as_text : json_null(), "tokens", tokens));
}

static Status show(Sampler *sampler, uint32_t from) {
    Session *session = sampler->session;
    Arena *arena = session->arena;
    Str text = tg_str(arena);
    for (uint32_t i = from; i < sampler->text.count; i++)
        add_token_text(sampler, sampler->text.at[i], &text);
    fwrite(text.text, 1, text.length, session->out);
    if (fflush(session->out) != 0)
        return tg_session_fail(session, TG_IO, "cannot write the text: %s", strerror(errno));
    return TG_OK;
}

Status tg_verb_sample(Session *session) {
    Sampler *sampler = TG_ALLOC(session->arena, Sampler, 1);
    sampler->session = session;
    int64_t tokens;
    TG_TRY(tg_options_count(session->arena, session->options, OPT_TOKENS, 1, TOKENS, &tokens, &session->why));
    TG_TRY(open_sampler(sampler));
    bool json = session->options->value[OPT_JSON] != NULL;
    const char *prompt = session->options->value[OPT_PROMPT];
    if (!json && prompt != NULL)
        TG_TRY(show(sampler, 0));
    for (int64_t i = 0; i < tokens; i++) {
        int64_t token;
        TG_TRY(next_token(sampler, &token));
        if (!json)
            TG_TRY(show(sampler, sampler->text.count - 1));
    }
    if (json)
        return print_json(sampler, prompt != NULL ? prompt : "");
    fputc('\n', session->out);
    return TG_OK;
}
