/* tgc completion bash|zsh: a script for the shell, from the tables of commands, options, passes and warnings. */
#include "driver/pipeline.h"

#include <string.h>

/* What a value can be, by what the tables call it. */
typedef enum Choice { CHOICE_FREE, CHOICE_WORDS, CHOICE_FILE, CHOICE_FOLDER } Choice;

static void add_alternatives(Str *to, const char *text) {
    for (size_t length = strcspn(text, " "); length; length--, text++)
        tg_str_add(to, *text == '|' ? " " : text, 1);
}

static void add_passes(Str *to, const char *text) {
    (void)text;
    for (int i = 0; i < PASS_COUNT; i++)
        tg_str_printf(to, "%s%s", i ? " " : "", tg_pass(i)->name);
}

static void add_stages(Str *to, const char *text) {
    (void)text;
    for (int i = 0; emit_stage_name(i); i++)
        tg_str_printf(to, "%s%s", i ? " " : "", emit_stage_name(i));
}

typedef struct ChoiceRow {
    const char *called;
    Choice choice;
    void (*words)(Str *to, const char *text);
} ChoiceRow;

static ChoiceRow choice_of(const char *called) {
    static const ChoiceRow rows[] = {
        {"FILE", CHOICE_FILE, NULL},   {"PATH", CHOICE_FILE, NULL},         {"DIR", CHOICE_FOLDER, NULL},
        {"FILE|-", CHOICE_FILE, NULL}, {"PROGRAM DUMP", CHOICE_FILE, NULL}, {"PASS", CHOICE_WORDS, add_passes},
        {"A,B", CHOICE_FREE, NULL},    {"STAGE", CHOICE_WORDS, add_stages},         {"FILE FILE", CHOICE_FILE, NULL},
        {"TRACE", CHOICE_FILE, NULL},
        {"SCRIPT", CHOICE_FILE, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].called, called) == 0)
            return rows[i];
    if (strncmp(called, "FILE.tg", 7) == 0)
        return (ChoiceRow){called, CHOICE_FILE, NULL};
    return (ChoiceRow){called, strchr(called, '|') ? CHOICE_WORDS : CHOICE_FREE, add_alternatives};
}

static const char *words_of(Arena *arena, ChoiceRow row) {
    Str text = tg_str(arena);
    if (row.choice == CHOICE_WORDS)
        row.words(&text, row.called);
    return text.text;
}

/* -Wunused, -Wno-unused and -Werror=unused of every warning. */
static void add_warnings(Str *to) {
    static const char *const forms[] = {"", "no-", "error="};
    tg_str_printf(to, " -Werror");
    for (int w = 0; w < WARNING_COUNT; w++)
        for (int f = 0; f < 3; f++) {
            tg_str_printf(to, " -W%s", forms[f]);
            for (const char *c = tg_warning_name((Warning)w); *c; c++)
                tg_str_add(to, *c == '_' ? "-" : c, 1);
        }
}

/* ---- bash ---- */

static void bash_options(Str *to, Command command) {
    tg_str_printf(to, "    %s) options='", cli_command_name(command));
    const OptionRow *row;
    for (uint32_t at = 0; (row = cli_next_option(command, &at)); at++)
        tg_str_printf(to, "%s%s%s%s", at ? " " : "", cli_dashes(row), row->name, row->value[0] ? "=" : "");
    if (cli_takes_warnings(command))
        add_warnings(to);
    const char *arguments = cli_command_row(command)->arguments;
    ChoiceRow choice = choice_of(arguments);
    tg_str_printf(to, "' words='%s' ;;\n", words_of(to->arena, choice));
}

static void bash_values(Str *to, Command command) {
    const OptionRow *row;
    for (uint32_t at = 0; (row = cli_next_option(command, &at)); at++) {
        ChoiceRow choice = choice_of(row->value);
        if (row->value[0])
            tg_str_printf(to, "    %s:%s%s) kind=%s values='%s' ;;\n", cli_command_name(command), cli_dashes(row),
                          row->name,
                          choice.choice == CHOICE_FILE     ? "-f"
                          : choice.choice == CHOICE_FOLDER ? "-d"
                                                           : "''",
                          words_of(to->arena, choice));
    }
}

static void bash(Str *to) {
    tg_str_printf(
        to, "# Completions of tgc for bash: source <(tgc completion bash)\n_tgc() {\n"
            "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
            "    local options='' words='' values='' kind=none\n"
            "    COMPREPLY=()\n"
            "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '");
    for (int i = 0; i < COMMAND_COUNT; i++)
        tg_str_printf(to, "%s ", cli_command_name((Command)i));
    tg_str_printf(to, "--help --version' -- \"$word\"))\n        return\n    fi\n"
                      "    if [[ $word == = ]]; then\n        word=''\n"
                      "    elif [[ $previous == = ]]; then\n        previous=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
                      "    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        bash_options(to, (Command)i);
    tg_str_printf(to, "    esac\n    case $command:$previous in\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        bash_values(to, (Command)i);
    tg_str_printf(to, "    esac\n"
                      "    if [[ $kind != none ]]; then\n"
                      "        COMPREPLY=($(compgen $kind -W \"$values\" -- \"$word\"))\n"
                      "    elif [[ $word == -* ]]; then\n"
                      "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
                      "        [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *= ]] && compopt -o nospace 2>/dev/null\n"
                      "    elif [[ -n $words && $COMP_CWORD == 2 ]]; then\n"
                      "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                      "    else\n"
                      "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
                      "        compopt -o filenames 2>/dev/null\n"
                      "    fi\n}\ncomplete -F _tgc tgc\n");
}

/* ---- zsh ---- */

/* Within single quotes; ':', '[' and ']' mean something to _arguments. */
static void zsh_text(Str *to, const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            tg_str_printf(to, "'\\'");
        if (strchr(":[]", *text))
            tg_str_printf(to, "\\");
        tg_str_add(to, text, 1);
    }
}

static void zsh_action(Str *to, const char *called) {
    ChoiceRow choice = choice_of(called);
    if (choice.choice == CHOICE_WORDS)
        tg_str_printf(to, "(%s)", words_of(to->arena, choice));
    else if (choice.choice != CHOICE_FREE)
        tg_str_printf(to, choice.choice == CHOICE_FOLDER ? "_files -/" : "_files");
}

static void zsh_command(Str *to, Command command) {
    const OptionRow *row;
    const CommandRow *own = cli_command_row(command);
    tg_str_printf(to, "    %s)\n        _arguments \\\n", own->name);
    for (uint32_t at = 0; (row = cli_next_option(command, &at)); at++) {
        tg_str_printf(to, "            '%s%s%s[", cli_dashes(row), row->name, row->value[0] ? "=" : "");
        zsh_text(to, row->help);
        tg_str_printf(to, "]");
        if (row->value[0]) {
            tg_str_printf(to, ":");
            zsh_text(to, row->value);
            tg_str_printf(to, ":");
            zsh_action(to, row->value);
        }
        tg_str_printf(to, "' \\\n");
    }
    if (own->most == 0) {
        tg_str_printf(to, "            && return ;;\n");
        return;
    }
    tg_str_printf(to, "            '1:");
    zsh_text(to, own->arguments);
    tg_str_printf(to, ":");
    zsh_action(to, own->arguments);
    tg_str_printf(to, "' '*:file:_files' && return ;;\n");
}

static void zsh(Str *to) {
    tg_str_printf(to, "#compdef tgc\n# Completions of tgc for zsh: put this into a folder of $fpath as _tgc\n_tgc() {\n"
                      "    if ((CURRENT == 2)); then\n        local -a commands=(\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        tg_str_printf(to, "            '%s:", cli_command_name((Command)i));
        zsh_text(to, cli_command_row((Command)i)->help);
        tg_str_printf(to, "'\n");
    }
    tg_str_printf(to, "        )\n        _describe command commands\n        return\n    fi\n"
                      "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        zsh_command(to, (Command)i);
    tg_str_printf(to, "    esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n    _tgc \"$@\"\nelse\n"
                      "    compdef _tgc tgc\nfi\n");
}

Status command_completion(Pipeline *p) {
    const char *shell = p->cli->arguments.at[0];
    bool is_bash = strcmp(shell, "bash") == 0;
    if (!is_bash && strcmp(shell, "zsh") != 0) {
        tg_error(p->diags, (Loc){0}, "there are completions for bash and zsh, not for '%s'", shell);
        return TG_USAGE;
    }
    Str text = tg_str(p->arena);
    is_bash ? bash(&text) : zsh(&text);
    fwrite(text.text, 1, text.length, stdout);
    return TG_OK;
}
