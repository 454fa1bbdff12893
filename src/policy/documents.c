/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/documents.h"

#include <stdbool.h>
#include <string.h>

struct source {
        const char *file;
        const char *text;
        size_t length;
        struct problems *problems;
};

static int parser_begin(yaml_parser_t *parser, const struct source *source)
{
        if (!yaml_parser_initialize(parser))
                return -ENOMEM;
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(parser, (const unsigned char *)source->text, source->length);
        return 0;
}

/* The problem's mark is not set where the bytes themselves are wrong: those know only their offset. */
static size_t syntax_line(const yaml_parser_t *parser, const struct source *source)
{
        size_t line = 1;

        if (parser->error != YAML_READER_ERROR)
                return parser->problem_mark.line + 1;
        for (size_t i = 0; i < source->length && i < parser->problem_offset; i++)
                line += source->text[i] == '\n';
        return line;
}

static bool line_has(const struct source *source, size_t line, const char *word)
{
        const char *text = source->text, *end = text + source->length, *next;

        for (; line > 1; line--) {
                next = memchr(text, '\n', (size_t)(end - text));
                if (!next)
                        return false;
                text = next + 1;
        }
        next = memchr(text, '\n', (size_t)(end - text));
        return memmem(text, (size_t)((next ? next : end) - text), word, strlen(word)) != NULL;
}

static int syntax_problem(const struct source *source, const yaml_parser_t *parser)
{
        size_t line = syntax_line(parser, source);
        const char *hint = "; the rest of the file is left out";

        if (parser->error == YAML_MEMORY_ERROR)
                return -ENOMEM;
        if (parser->error == YAML_READER_ERROR)
                hint = "; the file is left out: write it in UTF-8";
        else if (line_has(source, line, "/["))
                hint = "; put an address in brackets in quotes, like \"udp/[::]:5353\"";
        else if (line_has(source, line, "\t"))
                hint = "; indent with spaces, not with tabs";
        return problems_add(source->problems, source->file, line, "not valid YAML: %s%s",
                            parser->problem ? parser->problem : "unknown problem", hint);
}

static bool event_has_anchor(const yaml_event_t *event)
{
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                return event->data.scalar.anchor != NULL;
        case YAML_SEQUENCE_START_EVENT:
                return event->data.sequence_start.anchor != NULL;
        case YAML_MAPPING_START_EVENT:
                return event->data.mapping_start.anchor != NULL;
        default:
                return false;
        }
}

struct counts {
        size_t anchors, depth;
};

static void event_count(const yaml_event_t *event, struct counts *counts)
{
        counts->anchors += event_has_anchor(event);

        switch (event->type) {
        case YAML_DOCUMENT_START_EVENT:
                *counts = (struct counts){ 0 };
                break;
        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT:
                counts->depth++;
                break;
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                counts->depth--;
                break;
        default:
                break;
        }
}

/* libyaml's time grows with the square of the depth of lists in brackets, and of the anchors in a document: a first pass over the events
 * keeps both small. Returns 1, or 0 after noting why nothing is read. Other broken YAML is left to the real reading. */
static int source_check(const struct source *source)
{
        _cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };
        yaml_event_type_t type = YAML_NO_EVENT;
        struct counts counts = { 0 };
        yaml_event_t event;
        size_t line;

        if (parser_begin(&parser, source) < 0)
                return -ENOMEM;

        while (type != YAML_STREAM_END_EVENT && yaml_parser_parse(&parser, &event)) {
                type = event.type;
                line = event.start_mark.line + 1;
                event_count(&event, &counts);
                yaml_event_delete(&event);

                if (counts.anchors > DOCUMENTS_ANCHORS_MAX)
                        return problems_add(source->problems, source->file, line,
                                            "more than %d anchors in a document; the file is left out", DOCUMENTS_ANCHORS_MAX);
                if (counts.depth > DOCUMENTS_DEPTH_MAX)
                        return problems_add(source->problems, source->file, line,
                                            "more than %d lists and mappings within each other; the file is left out",
                                            DOCUMENTS_DEPTH_MAX);
        }
        return parser.error == YAML_READER_ERROR ? syntax_problem(source, &parser) : 1;
}

int documents_read(const char *file, const char *text, size_t length, struct problems *problems,
                   int (*document)(const char *file, yaml_document_t *document, void *userdata), void *userdata)
{
        const struct source source = { .file = file, .text = text, .length = length, .problems = problems };
        _cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };
        bool more = true;
        int r;

        r = source_check(&source);
        if (r <= 0)
                return r;
        r = parser_begin(&parser, &source);
        if (r < 0)
                return r;

        while (more) {
                yaml_document_t read;

                if (!yaml_parser_load(&parser, &read))
                        return syntax_problem(&source, &parser);
                more = yaml_document_get_root_node(&read) != NULL;
                r = document(file, &read, userdata);
                yaml_document_delete(&read);
                if (r < 0)
                        return r;
        }
        return 0;
}
