#include "runtime/options.h"
#include "runtime/settings.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <string.h>

static void check_why(const char *why, const char *part) {
    bool says = why != NULL && strstr(why, part) != NULL;
    if (!says)
        printf("\n'%s' lacks '%s'\n", why != NULL ? why : "(nothing)", part);
    CU_ASSERT(says);
}

static TgPlan plan_of(PlanSetting settings[3], PlanScalar scalars[2]) {
    settings[0] = (PlanSetting){"hidden", "128", "digits.tg:3", false};
    settings[1] = (PlanSetting){"optimizer.lr.peak", "0.01", "digits.tg:36", true};
    settings[2] = (PlanSetting){"epochs", "30", "digits.tg:35", true};
    scalars[0] = (PlanScalar){"step", PLAN_SCALAR_BUILTIN, 0};
    scalars[1] = (PlanScalar){"optimizer.lr.peak", PLAN_SCALAR_SETTING, 0.01};
    return (TgPlan){.settings = settings,
                    .setting_count = 3,
                    .scalars = scalars,
                    .scalar_count = 2,
                    .epochs = 30,
                    .seed = 1,
                    .shuffle = true,
                    .source_path = "digits.tg"};
}

static const PlanSetting *named(const Settings *settings, const char *name) {
    for (uint32_t i = 0; i < settings->all.count; i++)
        if (strcmp(settings->all.at[i].name, name) == 0)
            return &settings->all.at[i];
    return NULL;
}

static void settings(Scratch *scratch) {
    PlanSetting rows[3];
    PlanScalar scalars[2];
    TgPlan plan = plan_of(rows, scalars);
    Settings settings;
    const char *why = NULL;
    tg_settings_init(&settings, scratch->arena, &plan);
    CU_ASSERT(settings.epochs == 30 && settings.steps == 0 && settings.seed == 1 && settings.shuffle);
    CU_ASSERT_EQUAL(tg_settings_parse(&settings, "optimizer.lr.peak=1e-4", &why), TG_OK);
    CU_ASSERT(settings.scalars[1] == 1e-4);
    CU_ASSERT_STRING_EQUAL(named(&settings, "optimizer.lr.peak")->origin, "--set");
    CU_ASSERT_STRING_EQUAL(named(&settings, "hidden")->origin, "digits.tg:3");
    CU_ASSERT_EQUAL(tg_settings_parse(&settings, "seed=18446744073709551615", &why), TG_OK);
    CU_ASSERT(settings.seed == UINT64_MAX);
    CU_ASSERT_EQUAL(tg_settings_parse(&settings, "shuffle=false", &why), TG_OK);
    CU_ASSERT(!settings.shuffle);
    CU_ASSERT_EQUAL(tg_settings_set(&settings, "steps", "20", "--steps", &why), TG_OK);
    CU_ASSERT(settings.steps == 20 && settings.epochs == 0);
    CU_ASSERT_EQUAL(tg_settings_set(&settings, "epochs", "2", "--epochs", &why), TG_OK);
    CU_ASSERT(settings.steps == 20 && settings.epochs == 2);
}

static void refused(Scratch *scratch) {
    PlanSetting rows[3];
    PlanScalar scalars[2];
    TgPlan plan = plan_of(rows, scalars);
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"hidden=64", "'hidden' needs recompiling: tgc compile --set hidden=64 digits.tg"},
        {"hidden=64", "a program can set optimizer.lr.peak, epochs, steps, validate_every, seed, shuffle"},
        {"optimizer.lr.peek=1", "did you mean 'optimizer.lr.peak'?"},
        {"optimizer.lr.peak=fast", "'fast' is not a number"},
        {"optimizer.lr.peak=", "'' is not a number"},
        {"optimizer.lr.peak", "--set wants NAME=VALUE"},
        {"epochs=0", "not a whole number of 1 or more"},
        {"epochs=1.5", "not a whole number of 1 or more"},
        {"seed=-1", "not a whole number from 0"},
        {"shuffle=1", "not true or false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Settings settings;
        const char *why = NULL;
        tg_settings_init(&settings, scratch->arena, &plan);
        CU_ASSERT_EQUAL(tg_settings_parse(&settings, cases[i].text, &why), TG_USAGE);
        check_why(why, cases[i].why);
    }
}

static Status parse(Scratch *scratch, char **argv, Options *options, const char **why) {
    int argc = 0;
    while (argv[argc] != NULL)
        argc++;
    *why = NULL;
    return tg_options_parse(scratch->arena, argc, argv, options, why);
}

static void options(Scratch *scratch) {
    char *forms[][6] = {{"p", "train", "-epochs", "4", "--json", NULL},
                        {"p", "train", "-epochs=4", "-json", NULL},
                        {"p", "train", "--epochs", "4", "-json", NULL},
                        {"p", "train", "--epochs=4", "--json", NULL}};
    Options options;
    const char *why;
    for (int i = 0; i < 4; i++) {
        int64_t epochs = 0;
        CU_ASSERT_EQUAL(parse(scratch, forms[i], &options, &why), TG_OK);
        CU_ASSERT_EQUAL(tg_options_count(scratch->arena, &options, OPT_EPOCHS, 1, 0, &epochs, &why), TG_OK);
        CU_ASSERT(epochs == 4 && options.value[OPT_JSON] != NULL && options.verb == VERB_TRAIN);
    }
    char *predict[] = {"p", "predict", "next", "-5", "--out", "-", "--", "--json", NULL};
    CU_ASSERT_EQUAL(parse(scratch, predict, &options, &why), TG_OK);
    CU_ASSERT(options.arguments.count == 3 && options.value[OPT_JSON] == NULL);
    CU_ASSERT_STRING_EQUAL(options.arguments.at[1], "-5");
    char *sets[] = {"p", "eval", "--set", "a=-1", "-set=b=2", NULL};
    CU_ASSERT_EQUAL(parse(scratch, sets, &options, &why), TG_OK);
    CU_ASSERT(options.sets.count == 2);
    CU_ASSERT_STRING_EQUAL(options.sets.at[1], "b=2");
    char *help[] = {"p", "bench", "--help", NULL};
    CU_ASSERT_EQUAL(parse(scratch, help, &options, &why), TG_OK);
    Str text = tg_str(scratch->arena);
    tg_options_help(&text, &options, "p");
    CU_ASSERT(options.help && strstr(text.text, "--steps=N") != NULL && strstr(text.text, "--init") == NULL);
}

static void wrong_options(Scratch *scratch) {
    static const struct {
        char *argv[5];
        const char *why;
    } cases[] = {
        {{"p", "trian", NULL}, "unknown command 'trian'; did you mean 'train'?"},
        {{"p", "train", "--epoch", "3", NULL}, "unknown option '--epoch'; did you mean '--epochs'?"},
        {{"p", "train", "--epochs", NULL}, "--epochs wants a value: --epochs N"},
        {{"p", "train", "--json=yes", NULL}, "--json takes no value"},
        {{"p", "info", "--init", "f", NULL}, "'info' takes no --init"},
        {{"p", "train", "more", NULL}, "'train' takes no argument 'more'"},
        {{"p", NULL}, "a command is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Options options;
        const char *why;
        char *argv[5];
        memcpy(argv, cases[i].argv, sizeof argv);
        CU_ASSERT_EQUAL(parse(scratch, argv, &options, &why), TG_USAGE);
        check_why(why, cases[i].why);
    }
}

static void run_settings(void) { scratch_run(settings); }
static void run_refused(void) { scratch_run(refused); }
static void run_options(void) { scratch_run(options); }
static void run_wrong_options(void) { scratch_run(wrong_options); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("settings", NULL, NULL);
    CU_add_test(suite, "settings and their origins", run_settings);
    CU_add_test(suite, "settings that are refused", run_refused);
    CU_add_test(suite, "options", run_options);
    CU_add_test(suite, "options that are refused", run_wrong_options);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
