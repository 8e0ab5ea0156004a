// How the commands show the cubature of a scene.
#include "app/app.h"

static void put_rule(app_json *json, const scene *s, const scene_rule *rule) {
    const cubature_training_options *o = &s->parts[rule->part].training;
    app_json_object(json, NULL);
    if (s->forest.count > 0)
        app_json_text(json, "part", s->parts[rule->part].name);
    else
        app_json_integer(json, "domain", rule->domain);
    app_json_text(json, "method", cubature_method_name(o->method));
    app_json_integer(json, "elements", rule->training.elements);
    app_json_integer(json, "of", rule->elements);
    app_json_integer(json, "poses", rule->training.poses);
    app_json_number(json, "error", rule->training.fit_error);
    app_json_bool(json, "reached", rule->training.reached);
    if (o->held_out > 0) app_json_number(json, "held_out_error", rule->training.held_out_error);
    app_json_end(json);
}

void app_put_cubature(app_json *json, const scene *s, const scene_result *result) {
    const cubature_training_report  *t = &result->training;
    const cubature_training_options *o = &s->parts[s->object].training;
    bool                             many = result->rule_count > 0;
    if (t->elements == 0) return;
    app_json_object(json, "cubature");
    if (!many) app_json_text(json, "method", cubature_method_name(o->method));
    app_json_integer(json, "elements", t->elements);
    app_json_integer(json, "poses", t->poses);
    app_json_integer(json, "inverted", t->inverted);
    app_json_integer(json, "dropped", t->dropped);
    app_json_number(json, "error", t->fit_error);
    app_json_bool(json, "reached", t->reached);
    if (!many) app_json_bool(json, "resumed", t->resumed);
    if (many || o->held_out > 0) app_json_number(json, "held_out_error", t->held_out_error);
    if (many) app_json_array(json, s->forest.count > 0 ? "parts" : "domains");
    for (int i = 0; i < result->rule_count; i++) put_rule(json, s, &result->rules[i]);
    if (many) app_json_end(json);
    app_json_end(json);
}

void app_print_cubature(FILE *out, const scene *s, const scene_result *result) {
    const cubature_training_report  *t = &result->training;
    const cubature_training_options *o = &s->parts[s->object].training;
    bool                             tested = o->held_out > 0;
    int                              elements = 0;
    if (t->elements == 0) return;
    if (result->rule_count == 0) {
        fprintf(out, "%s cubature: %d of %d elements, %d poses, error %.*g%%", cubature_method_name(o->method),
                t->elements, s->parts[s->object].mesh.element_count, t->poses, cubature_error_digits(t->fit_error),
                100 * t->fit_error);
    } else {
        for (int i = 0; i < result->rule_count; i++) {
            elements += result->rules[i].elements;
            tested = tested || s->parts[result->rules[i].part].training.held_out > 0;
        }
        fprintf(out, "cubature in %d %s: %d of %d elements, error %.*g%% at most", result->rule_count,
                s->forest.count > 0 ? "parts" : "domains", t->elements, elements, cubature_error_digits(t->fit_error),
                100 * t->fit_error);
    }
    if (tested)
        fprintf(out, ", %.*g%% at held-out poses", cubature_error_digits(t->held_out_error), 100 * t->held_out_error);
    fprintf(out, result->rule_count > 0 ? "; --json has each\n" : "\n");
}
