/* SPDX-License-Identifier: Apache-2.0 */
#include "activity/pod_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"

enum { HASH_LENGTH = 32, ID_LENGTH = 64, UUID_LENGTH = 36 };

static const char *const qos_names[] = { "", "burstable", "besteffort" };

struct part { /* of a path, between slashes */
        const char *text;
        size_t length;
};

static bool part_is(const struct part *part, const char *text)
{
        return part->length == strlen(text) && memcmp(part->text, text, part->length) == 0;
}

/* Takes @prefix off the beginning. */
static bool part_skip(struct part *part, const char *prefix)
{
        size_t length = strlen(prefix);

        if (part->length < length || memcmp(part->text, prefix, length) != 0)
                return false;
        part->text += length;
        part->length -= length;
        return true;
}

static bool part_drop_end(struct part *part, const char *end)
{
        size_t length = strlen(end);

        if (part->length < length || memcmp(part->text + part->length - length, end, length) != 0)
                return false;
        part->length -= length;
        return true;
}

static bool next_part(const char **path, struct part *ret_part)
{
        *path += strspn(*path, "/");
        ret_part->text = *path;
        ret_part->length = strcspn(*path, "/");
        *path += ret_part->length;
        return ret_part->length > 0;
}

static bool is_hex(const char *text, size_t length)
{
        for (size_t i = 0; i < length; i++)
                if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
                        return false;
        return true;
}

/* A UUID whose groups @dash separates, or a hash. */
static bool is_uid(const struct part *part, char dash)
{
        if (part->length == HASH_LENGTH)
                return is_hex(part->text, HASH_LENGTH);
        if (part->length != UUID_LENGTH)
                return false;
        for (size_t i = 0; i < UUID_LENGTH; i++)
                if (i == 8 || i == 13 || i == 18 || i == 23 ? part->text[i] != dash : !is_hex(&part->text[i], 1))
                        return false;
        return true;
}

static void copy_uid(const struct part *part, char ret_uid[static POD_UID_MAX])
{
        memcpy(ret_uid, part->text, part->length);
        ret_uid[part->length] = '\0';
        for (char *c = ret_uid; *c; c++)
                if (*c == '_')
                        *c = '-';
}

/* Whether pods of some class are right below the cgroup @parent, whose own parent is @above. */
static bool has_pods(const struct part *above, const struct part *parent, bool slices)
{
        struct part stem = *parent, root = *above;

        if (!slices)
                return part_is(parent, "kubepods") ||
                       (part_is(above, "kubepods") && (part_is(parent, "burstable") || part_is(parent, "besteffort")));
        if (!part_drop_end(&stem, ".slice"))
                return false;
        if (part_drop_end(&stem, "-burstable") || part_drop_end(&stem, "-besteffort")) {
                if (!part_drop_end(&root, ".slice") || root.length != stem.length || memcmp(root.text, stem.text, stem.length) != 0)
                        return false;
        }
        return part_is(&stem, "kubepods") || part_drop_end(&stem, "-kubepods");
}

/* Whether @part is a pod's own cgroup; its name repeats its parent's where slices are used. */
static bool is_pod(const struct part *above, const struct part *parent, const struct part *part, char ret_uid[static POD_UID_MAX])
{
        struct part uid = *part;
        bool slices = part_drop_end(&uid, ".slice");

        if (!has_pods(above, parent, slices))
                return false;
        if (slices) {
                size_t stem = parent->length - strlen(".slice");

                if (uid.length < stem || memcmp(uid.text, parent->text, stem) != 0)
                        return false;
                uid.text += stem;
                uid.length -= stem;
                if (!part_skip(&uid, "-"))
                        return false;
        }
        if (!part_skip(&uid, "pod") || !is_uid(&uid, slices ? '_' : '-'))
                return false;
        copy_uid(&uid, ret_uid);
        return true;
}

static void copy_container(struct part part, char ret_id[static CONTAINER_ID_MAX])
{
        static const char *const runtimes[] = { "cri-containerd-", "crio-", "docker-" };

        ret_id[0] = '\0';
        part_drop_end(&part, ".scope");
        for (size_t i = 0; i < ELEMENTSOF(runtimes); i++)
                if (part_skip(&part, runtimes[i]))
                        break;
        if (part.length != ID_LENGTH || !is_hex(part.text, ID_LENGTH))
                return;
        memcpy(ret_id, part.text, ID_LENGTH);
        ret_id[ID_LENGTH] = '\0';
}

int pod_cgroup_parse(const char *path, struct pod_cgroup *ret_pod)
{
        struct part above = { "", 0 }, parent = { "", 0 }, part;
        const char *rest = path;
        struct pod_cgroup pod;

        while (next_part(&rest, &part)) {
                if (is_pod(&above, &parent, &part, pod.uid)) {
                        pod.length = (size_t)(rest - path);
                        next_part(&rest, &part);
                        copy_container(part, pod.container);
                        *ret_pod = pod;
                        return 0;
                }
                above = parent;
                parent = part;
        }
        return -ENOENT;
}

static bool is_directory(int at, const char *path)
{
        struct stat status;

        return fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* Looks into @kubepods, a directory below @root_fd, for the pod in each class. @stem is what slices' names begin with; NULL: they are
 * no slices. */
static bool find_in(int root_fd, const char *kubepods, const char *stem, const char *uid, char path[static PATH_MAX])
{
        char under[POD_UID_MAX];

        snprintf(under, sizeof(under), "%s", uid);
        for (char *c = under; *c; c++)
                if (*c == '-')
                        *c = '_';
        for (size_t i = 0; i < ELEMENTSOF(qos_names); i++) {
                const char *qos = qos_names[i], *dash = *qos ? "-" : "", *slash = *qos ? "/" : "";
                int length;

                if (!stem)
                        length = snprintf(path, PATH_MAX, "%s/%s%spod%s", kubepods, qos, slash, uid);
                else if (*qos)
                        length =
                                snprintf(path, PATH_MAX, "%s/%s-%s.slice/%s-%s-pod%s.slice", kubepods, stem, qos, stem, qos, under);
                else
                        length = snprintf(path, PATH_MAX, "%s/%s%s-pod%s.slice", kubepods, stem, dash, under);
                if (length < PATH_MAX && is_directory(root_fd, path))
                        return true;
        }
        return false;
}

/* @name is a directory of the root: the pods' own, or one that a kubelet has for its root. */
static bool find_below(int root_fd, const char *name, const char *uid, char path[static PATH_MAX])
{
        char stem[NAME_MAX + sizeof("-kubepods")], kubepods[2 * NAME_MAX + 32];
        struct part part = { name, strlen(name) };

        if (part_is(&part, "kubepods"))
                return find_in(root_fd, name, NULL, uid, path);
        if (!part_drop_end(&part, ".slice")) {
                snprintf(kubepods, sizeof(kubepods), "%s/kubepods", name);
                return find_in(root_fd, kubepods, NULL, uid, path);
        }
        if (part_is(&part, "kubepods"))
                return find_in(root_fd, name, "kubepods", uid, path);
        snprintf(stem, sizeof(stem), "%.*s-kubepods", (int)part.length, part.text);
        snprintf(kubepods, sizeof(kubepods), "%s/%s.slice", name, stem);
        return find_in(root_fd, kubepods, stem, uid, path);
}

static void closedirp(DIR **directory)
{
        if (*directory)
                closedir(*directory);
}

int pod_cgroup_find(const char *root, const char *uid, char **ret_path)
{
        _cleanup_(closedirp) DIR *directory = NULL;
        const struct part part = { uid, strlen(uid) };
        char path[PATH_MAX];

        if (!is_uid(&part, '-'))
                return -EINVAL;
        directory = opendir(root);
        if (!directory)
                return -errno;
        for (struct dirent *entry; (entry = readdir(directory));) {
                if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || !find_below(dirfd(directory), entry->d_name, uid, path))
                        continue;
                if (asprintf(ret_path, "%s/%s", root, path) < 0)
                        return -ENOMEM;
                return 0;
        }
        return -ENOENT;
}
