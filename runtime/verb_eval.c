#include "runtime/session.h"

Status tg_verb_eval(Session *session) {
    Loop *loop = TG_ALLOC(session->arena, Loop, 1);
    RecordSet set;
    if (tg_plan_func(session->plan, PLAN_EVAL_MICRO, NULL) == NULL)
        return tg_session_fail(session, TG_MODEL, "%s has no train { } block, so there is nothing to evaluate",
                               session->plan->source_path);
    TG_TRY(tg_session_start(session));
    TG_TRY(tg_session_load_weights(session)); /* the words of its data first */
    TG_TRY(tg_session_eval_set(session, &set));
    TG_TRY(tg_loop_open(loop, session->arena, session->plan, session->exec, NULL, &set, &session->why));
    double begin = tg_seconds();
    tg_loop_evaluate(loop, &set);
    double seconds = tg_seconds() - begin;
    const LoopFields *fields = &loop->eval_fields;
    if (session->options->value[OPT_JSON] != NULL)
        return tg_session_print_json(session, json_pack("{s:I, s:f, s:o}", "records", (json_int_t)set.count, "seconds",
                                                        seconds, "val", tg_json_fields(fields, fields->values)));
    fprintf(session->out, "%lld records  %s\n", (long long)set.count,
            tg_fields_text(session->arena, fields, fields->values));
    return TG_OK;
}
