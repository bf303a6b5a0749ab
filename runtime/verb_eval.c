#include "runtime/session.h"

Status tg_verb_eval(Session *session) {
    Loop *loop = TG_ALLOC(session->arena, Loop, 1);
    RecordSet *sets;
    uint32_t count;
    if (tg_plan_func(session->plan, PLAN_EVAL_MICRO, NULL) == NULL)
        return tg_session_fail(session, TG_MODEL, "%s has no train { } block, so there is nothing to evaluate",
                               session->plan->source_path);
    TG_TRY(tg_session_start(session));
    TG_TRY(tg_session_load_weights(session)); /* the words of its data first */
    TG_TRY(tg_session_eval_sets(session, &sets, &count));
    TG_TRY(tg_loop_open(loop, session->arena, session->plan, session->exec, NULL, sets, count, &session->why));
    double begin = tg_seconds();
    tg_loop_evaluate(loop);
    double seconds = tg_seconds() - begin;
    if (session->options->value[OPT_JSON] != NULL)
        return tg_session_print_json(session, json_pack("{s:o, s:f, s:o}", "records", tg_json_evaluated(loop),
                                                        "seconds", seconds, "val", tg_json_evaluation(loop)));
    for (uint32_t i = 0; i < loop->set_count; i++) {
        const LoopSet *set = &loop->sets[i];
        fprintf(session->out, "%s%s%lld records  %s\n", set->as, set->as[0] != '\0' ? "  " : "",
                (long long)set->data->count, tg_fields_text(session->arena, &set->fields, set->fields.values));
    }
    return TG_OK;
}
