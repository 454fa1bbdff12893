/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/load.h"

#include <string.h>

#include "policy/documents.h"
#include "policy/files.h"
#include "policy/holders.h"
#include "policy/reader.h"
#include "policy/spec.h"

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

static int load_document(const char *file, yaml_document_t *document, void *userdata)
{
        struct loader *loader = userdata;
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

static int load_text(struct loader *loader, const char *file, const char *text, size_t length)
{
        problems_next_file(&loader->problems);
        return documents_read(file, text, length, &loader->problems, load_document, loader);
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
