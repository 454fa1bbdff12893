/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/load.h"

#include <string.h>
#include <yaml.h>

#include "policy/files.h"
#include "policy/holders.h"
#include "policy/reader.h"
#include "policy/spec.h"

/* libyaml compares each new anchor with all before it, and each alias with the anchors. */
enum { ANCHORS_MAX = 256 };

struct loader {
        struct policy_set *set;
        struct problems problems;
        struct holders *holders;
        policy_address_is_local is_local;
        void *userdata;
};

struct policy_set *policy_set_free(struct policy_set *set)
{
        if (!set)
                return NULL;

        for (size_t i = 0; i < set->n_policies; i++)
                policy_free(set->policies[i]);
        free(set->policies);
        for (size_t i = 0; i < set->n_errors; i++)
                free(set->errors[i]);
        free(set->errors);
        free(set);
        return NULL;
}

static void loader_done(struct loader *loader)
{
        loader->holders = holders_free(loader->holders);
        loader->set = policy_set_free(loader->set);
        problems_done(&loader->problems);
}

static int loader_begin(struct loader *loader)
{
        loader->set = calloc(1, sizeof(*loader->set));
        if (!loader->set)
                return -ENOMEM;
        return holders_new(&loader->holders);
}

static struct policy_set *loader_finish(struct loader *loader)
{
        loader->set->errors = TAKE_PTR(loader->problems.messages);
        loader->set->n_errors = loader->problems.n_messages;
        loader->problems.n_messages = 0;
        return TAKE_PTR(loader->set);
}

/* Returns 1, 0 after noting why @policy cannot have @frontend, or -ENOMEM. */
static int frontend_check(struct loader *loader, struct reader *reader, const struct policy *policy, size_t index)
{
        const struct frontend *frontend = &policy->frontends[index];
        char frontend_text[FRONTEND_TEXT_MAX], address_text[ADDRESS_TEXT_MAX], problem[512];
        const struct policy *other;

        other = holders_of_frontend(loader->holders, frontend);
        if (other) {
                snprintf(problem, sizeof(problem),
                         "policy \"%s\": %s is already held for policy \"%s\" (%.200s:%u); remove one of the two listen entries",
                         policy->name, frontend_format(frontend, frontend_text), other->name, other->file, other->line);
                return spec_listen_problem(reader, index, problem);
        }

        if (loader->is_local && !address_is_wildcard(&frontend->address) &&
            !loader->is_local(&frontend->address, loader->userdata)) {
                snprintf(problem, sizeof(problem), "%s is not an address of this machine; listen on one of its own, or on %s",
                         address_format(&frontend->address, address_text),
                         address_is_ipv4(&frontend->address) ? "0.0.0.0" : "[::]");
                return spec_listen_problem(reader, index, problem);
        }
        return 1;
}

/* Returns 1 when @policy may join the set. */
static int policy_check(struct loader *loader, struct reader *reader, const struct policy *policy)
{
        const struct policy *other = holders_of_name(loader->holders, policy->name);
        size_t found = loader->problems.n_found;
        int r;

        if (loader->set->n_policies == POLICY_SET_MAX)
                return problems_add(&loader->problems, policy->file, policy->line, "policy \"%s\": more than %d policies",
                                    policy->name, POLICY_SET_MAX);
        if (other)
                return problems_add(&loader->problems, policy->file, policy->line,
                                    "metadata.name: \"%s\" is already the name of the policy in %s:%u; give one of them another",
                                    policy->name, other->file, other->line);

        for (size_t i = 0; i < policy->n_frontends; i++) {
                r = frontend_check(loader, reader, policy, i);
                if (r < 0)
                        return r;
        }
        return loader->problems.n_found == found;
}

static int set_append(struct policy_set *set, struct policy *policy)
{
        struct policy **policies;

        /* Grows at powers of two, so that many policies are not copied many times. */
        if ((set->n_policies & (set->n_policies - 1)) == 0) {
                policies = reallocarray(set->policies, set->n_policies ? 2 * set->n_policies : 1, sizeof(*policies));
                if (!policies)
                        return -ENOMEM;
                set->policies = policies;
        }
        set->policies[set->n_policies++] = policy;
        return 0;
}

static int load_document(struct loader *loader, const char *file, yaml_document_t *document)
{
        struct reader reader = { .file = file, .document = document, .problems = &loader->problems };
        _cleanup_(policy_freep) struct policy *policy = NULL;
        struct value root = reader_root(&reader);
        int r;

        if (!root.node || reader_is_null(&root))
                return 0;

        r = spec_read(&reader, &policy);
        if (r > 0)
                r = policy_check(loader, &reader, policy);
        if (r <= 0)
                return r;

        r = holders_add(loader->holders, policy);
        if (r < 0)
                return r;
        r = set_append(loader->set, policy);
        if (r < 0)
                return r;
        TAKE_PTR(policy);
        return 0;
}

static void parser_begin(yaml_parser_t *parser, const char *text, size_t length)
{
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(parser, (const unsigned char *)text, length);
}

/* The problem's mark is not set where the bytes themselves are wrong: those know only their offset. */
static size_t syntax_line(const yaml_parser_t *parser, const char *text, size_t length)
{
        size_t line = 1;

        if (parser->error != YAML_READER_ERROR)
                return parser->problem_mark.line + 1;
        for (size_t i = 0; i < length && i < parser->problem_offset; i++)
                line += text[i] == '\n';
        return line;
}

static bool line_has(const char *text, size_t length, size_t line, const char *word)
{
        const char *end = text + length, *next;

        for (; line > 1; line--) {
                next = memchr(text, '\n', (size_t)(end - text));
                if (!next)
                        return false;
                text = next + 1;
        }
        next = memchr(text, '\n', (size_t)(end - text));
        return memmem(text, (size_t)((next ? next : end) - text), word, strlen(word)) != NULL;
}

static int syntax_problem(struct loader *loader, const char *file, const yaml_parser_t *parser, const char *text, size_t length)
{
        size_t line = syntax_line(parser, text, length);
        const char *hint = "; the rest of the file is left out";

        if (parser->error == YAML_MEMORY_ERROR)
                return -ENOMEM;
        if (parser->error == YAML_READER_ERROR)
                hint = "; the file is left out: write it in UTF-8";
        else if (line_has(text, length, line, "/["))
                hint = "; put an address in brackets in quotes, like \"udp/[::]:5353\"";
        else if (line_has(text, length, line, "\t"))
                hint = "; indent with spaces, not with tabs";
        return problems_add(&loader->problems, file, line, "not valid YAML: %s%s",
                            parser->problem ? parser->problem : "unknown problem", hint);
}

/* Returns 1, or 0 after noting why nothing of the file is read: bytes that are not UTF-8, which libyaml may meet long before or after
 * a document's end, or a document with more anchors than ANCHORS_MAX. Other syntax errors are left to the real reading. */
static int text_check(struct loader *loader, const char *file, const char *text, size_t length)
{
        _cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };
        yaml_event_type_t type = YAML_NO_EVENT;
        size_t anchors = 0;
        yaml_event_t event;

        if (!yaml_parser_initialize(&parser))
                return -ENOMEM;
        parser_begin(&parser, text, length);

        while (type != YAML_STREAM_END_EVENT && yaml_parser_parse(&parser, &event)) {
                type = event.type;
                if (type == YAML_DOCUMENT_START_EVENT)
                        anchors = 0;
                anchors += (type == YAML_SCALAR_EVENT && event.data.scalar.anchor) ||
                           (type == YAML_SEQUENCE_START_EVENT && event.data.sequence_start.anchor) ||
                           (type == YAML_MAPPING_START_EVENT && event.data.mapping_start.anchor);
                yaml_event_delete(&event);
                if (anchors > ANCHORS_MAX)
                        return problems_add(&loader->problems, file, parser.mark.line + 1,
                                            "more than %d anchors in a document; the file is left out", ANCHORS_MAX);
        }
        return parser.error == YAML_READER_ERROR ? syntax_problem(loader, file, &parser, text, length) : 1;
}

static int load_text(struct loader *loader, const char *file, const char *text, size_t length)
{
        _cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };
        bool more = true;
        int r;

        problems_next_file(&loader->problems);
        r = text_check(loader, file, text, length);
        if (r <= 0)
                return r;

        if (!yaml_parser_initialize(&parser))
                return -ENOMEM;
        parser_begin(&parser, text, length);

        while (more) {
                yaml_document_t document;

                if (!yaml_parser_load(&parser, &document))
                        return syntax_problem(loader, file, &parser, text, length);
                more = yaml_document_get_root_node(&document) != NULL;
                r = load_document(loader, file, &document);
                yaml_document_delete(&document);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int load_file(struct loader *loader, const char *path)
{
        _cleanup_(freep) char *text = NULL;
        size_t length;
        int r;

        r = file_read(path, &text, &length);
        if (r == -ENOMEM)
                return r;
        if (r == -EFBIG)
                return problems_add(&loader->problems, path, 0, "larger than %d KiB; split it into several files",
                                    FILE_BYTES_MAX / 1024);
        if (r < 0)
                return problems_add(&loader->problems, path, 0, "cannot be read: %s", strerror(-r));
        return load_text(loader, path, text, length);
}

static int load_path(struct loader *loader, const char *path)
{
        _cleanup_(file_list_done) struct file_list list = { 0 };
        int r;

        r = file_list_read(path, &list);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return problems_add(&loader->problems, path, 0, "cannot be read: %s", strerror(-r));

        for (size_t i = 0; i < list.n_paths; i++) {
                r = load_file(loader, list.paths[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int policy_set_load(const char *const *paths, size_t n_paths, policy_address_is_local is_local, void *userdata,
                    struct policy_set **ret_set)
{
        _cleanup_(loader_done) struct loader loader = { .is_local = is_local, .userdata = userdata };
        int r;

        r = loader_begin(&loader);
        for (size_t i = 0; r == 0 && i < n_paths; i++) {
                problems_next_file(&loader.problems);
                r = load_path(&loader, paths[i]);
        }
        if (r < 0)
                return r;

        *ret_set = loader_finish(&loader);
        return 0;
}

int policy_set_load_text(const char *text, size_t length, const char *name, struct policy_set **ret_set)
{
        _cleanup_(loader_done) struct loader loader = { 0 };
        int r;

        r = loader_begin(&loader);
        if (r == 0)
                r = load_text(&loader, name, text, length);
        if (r < 0)
                return r;

        *ret_set = loader_finish(&loader);
        return 0;
}
