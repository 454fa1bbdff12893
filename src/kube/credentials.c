/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/credentials.h"

#include <string.h>
#include <sys/stat.h>

#include "base/time.h"
#include "kube/text_file.h"

struct material {
        char *file; /* or NULL */
        char *text; /* NULL: nothing configured, or not read yet */
        struct stat seen;
        uint64_t read_ns;
        bool dropped;
};

struct kube_credentials {
        struct material ca, certificate, key, token;
};

static void secret_free(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static int material_init(struct material *material, const struct kube_pem *pem)
{
        material->file = pem->file ? strdup(pem->file) : NULL;
        material->text = !pem->file && pem->data ? strdup(pem->data) : NULL;
        return (pem->file && !material->file) || (!pem->file && pem->data && !material->text) ? -ENOMEM : 0;
}

static void material_done(struct material *material)
{
        free(material->file);
        secret_free(material->text);
}

/* Nothing after it may get into the headers. */
static void token_cut(char *token)
{
        token[strcspn(token, " \t\r\n")] = '\0';
}

int kube_credentials_new(const struct kube_config *config, struct kube_credentials **ret_credentials)
{
        _cleanup_(kube_credentials_freep) struct kube_credentials *credentials = calloc(1, sizeof(*credentials));

        if (!credentials || material_init(&credentials->ca, &config->ca) < 0 ||
            material_init(&credentials->certificate, &config->client_certificate) < 0 ||
            material_init(&credentials->key, &config->client_key) < 0 || material_init(&credentials->token, &config->token) < 0)
                return -ENOMEM;
        if (credentials->token.text)
                token_cut(credentials->token.text);
        *ret_credentials = TAKE_PTR(credentials);
        return 0;
}

struct kube_credentials *kube_credentials_free(struct kube_credentials *credentials)
{
        if (!credentials)
                return NULL;
        material_done(&credentials->ca);
        material_done(&credentials->certificate);
        material_done(&credentials->key);
        material_done(&credentials->token);
        free(credentials);
        return NULL;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int material_read(struct material *material, uint64_t now_ns)
{
        char *text;
        int r = kube_text_file_read(material->file, KUBE_CREDENTIAL_BYTES_MAX, &text);

        if (r < 0)
                return r;
        secret_free(material->text);
        material->text = text;
        material->read_ns = now_ns;
        material->dropped = false;
        return 0;
}

static int changed_read(struct material *material, uint64_t now_ns)
{
        struct stat now;
        int r;

        if (!material->file)
                return 0;
        if (stat(material->file, &now) < 0)
                return material->text ? 0 : -errno;
        if (material->text && same_file(&now, &material->seen))
                return 0;

        r = material_read(material, now_ns);
        if (r >= 0)
                material->seen = now;
        return material->text ? 0 : r;
}

static int token_read(struct material *token, uint64_t now_ns)
{
        int r;

        if (!token->file || (token->text && !token->dropped && now_ns - token->read_ns < KUBE_TOKEN_SECONDS * NSEC_PER_SEC))
                return 0;
        r = material_read(token, now_ns);
        if (r >= 0)
                token_cut(token->text);
        return token->text ? 0 : r;
}

int kube_credentials_refresh(struct kube_credentials *credentials, uint64_t now_ns, const char **ret_file)
{
        struct material *const files[] = { &credentials->ca, &credentials->certificate, &credentials->key };
        int r;

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                r = changed_read(files[i], now_ns);
                if (r < 0) {
                        *ret_file = files[i]->file;
                        return r;
                }
        }
        r = token_read(&credentials->token, now_ns);
        if (r < 0)
                *ret_file = credentials->token.file;
        return r;
}

void kube_credentials_drop_token(struct kube_credentials *credentials, const char *token)
{
        struct material *kept = &credentials->token;

        /* a request that was sent with an older token says nothing about this one */
        if (kept->text && token && strcmp(kept->text, token) == 0)
                kept->dropped = true;
}

const char *kube_credentials_ca(const struct kube_credentials *credentials)
{
        return credentials->ca.text;
}

const char *kube_credentials_certificate(const struct kube_credentials *credentials)
{
        return credentials->certificate.text;
}

const char *kube_credentials_key(const struct kube_credentials *credentials)
{
        return credentials->key.text;
}

const char *kube_credentials_token(const struct kube_credentials *credentials)
{
        return credentials->token.text;
}
