/* SPDX-License-Identifier: Apache-2.0 */
/* Whose pod it is, by its name. An EndpointSlice has neither labels nor owners of its pods, but their controllers name them:
 *
 *   Deployment   NAME-HASH-RANDOM, made by its ReplicaSet NAME-HASH (k8s.io/kubernetes/pkg/controller/deployment/sync.go)
 *   ReplicaSet   NAME-RANDOM      (metadata.generateName, k8s.io/apiserver/pkg/storage/names: five characters after at most 58)
 *   Job          NAME-RANDOM, or NAME-INDEX-RANDOM
 *   StatefulSet  NAME-ORDINAL
 *
 * HASH and RANDOM are of an alphabet without vowels (k8s.io/apimachinery/pkg/util/rand), which few words are.
 */
#include <string.h>

#include "controller/resolve_private.h"

enum { RANDOM_LENGTH = 5, HASH_LENGTH_MAX = 10, GENERATED_BASE_MAX = 58 };

static const char digits[] = "0123456789", safe_characters[] = "bcdfghjklmnpqrstvwxz2456789";

/* Goes past one part of a name, of @min to @max of @characters. */
static bool skip_part(const char **text, const char *characters, size_t min, size_t max)
{
        size_t length = strspn(*text, characters);

        if (length < min || length > max)
                return false;
        *text += length;
        return true;
}

static bool skip_dash(const char **text)
{
        if (**text != '-')
                return false;
        ++*text;
        return true;
}

static bool is_random(const char *text)
{
        return skip_part(&text, safe_characters, RANDOM_LENGTH, RANDOM_LENGTH) && *text == '\0';
}

static bool is_deployment_rest(const char *rest)
{
        return skip_part(&rest, safe_characters, 1, HASH_LENGTH_MAX) && skip_dash(&rest) && is_random(rest);
}

static bool is_job_rest(const char *rest)
{
        return is_random(rest) || (skip_part(&rest, digits, 1, HASH_LENGTH_MAX) && skip_dash(&rest) && is_random(rest));
}

static bool is_ordinal(const char *rest)
{
        return skip_part(&rest, digits, 1, HASH_LENGTH_MAX) && *rest == '\0';
}

bool resolve_is_pod_of(const struct target_reference *target, const char *pod)
{
        static const struct {
                const char *api_version, *kind;
                bool (*is_rest)(const char *rest);
                size_t generated; /* bytes that its controller appends at most before what is random */
        } kinds[] = {
                { "apps/v1", "Deployment", is_deployment_rest, HASH_LENGTH_MAX + 2 },
                { "apps/v1", "ReplicaSet", is_random, 1 },
                { "apps/v1", "StatefulSet", is_ordinal, 0 },
                { "batch/v1", "Job", is_job_rest, HASH_LENGTH_MAX + 2 },
        };
        size_t length = strlen(target->name);

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                if (strcmp(kinds[i].api_version, target->api_version) != 0 || strcmp(kinds[i].kind, target->kind) != 0)
                        continue;
                if (length + kinds[i].generated > GENERATED_BASE_MAX)
                        return true; /* it may be cut anywhere */
                return strncmp(pod, target->name, length) == 0 && pod[length] == '-' && kinds[i].is_rest(pod + length + 1);
        }
        return true;
}
