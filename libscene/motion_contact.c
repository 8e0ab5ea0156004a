// Contact of the domains of a tree with the obstacles of a scene, for bodies cut into domains and for instances.
#include "libscene/class.h" // scene_add_note
#include "libscene/internal.h"
#include "libscene/motion.h"

#include <math.h>
#include <stdio.h>

fem_status scene_vertex_areas(const fem_mesh *mesh, int count, const int *triangles, double **areas) {
    fem_status status = FEM_OK;
    int       *all = NULL;
    double    *made = fem_calloc((size_t)mesh->vertex_count, sizeof *made);
    if (!made) return fem_fail(FEM_NO_MEMORY, "no memory for contact");
    if (!triangles) {
        FEM_TRY(fem_mesh_surface(mesh, &count, &all, NULL));
        triangles = all;
    }
    for (int t = 0; t < count; t++) {
        const int *corner = triangles + 3 * (size_t)t;
        double     a[3], b[3], normal[3];
        vec3_sub(a, mesh->vertices + 3 * (size_t)corner[1], mesh->vertices + 3 * (size_t)corner[0]);
        vec3_sub(b, mesh->vertices + 3 * (size_t)corner[2], mesh->vertices + 3 * (size_t)corner[0]);
        vec3_cross(normal, a, b);
        for (int k = 0; k < 3; k++) made[corner[k]] += vec3_norm(normal) / 6;
    }
    *areas = made;
    made = NULL;
done:
    fem_free(all), fem_free(made);
    return status;
}

void scene_contacts_destroy(scene_contacts *c) {
    for (int i = 0; c->contacts && i < c->count; i++) solver_contact_destroy(c->contacts[i]);
    fem_free(c->contacts), fem_free(c->work), fem_free(c->load);
    *c = (scene_contacts){0};
}

fem_status scene_contacts_create(scene_contacts *c, const scene *s, solver_tree *tree, int count, int most) {
    *c = (scene_contacts){.s = s, .tree = tree, .count = count};
    c->implicit = s->tree.options.subtree == SOLVER_ARTICULATED && s->tree.options.integrator == SOLVER_TREE_MIDPOINT;
    c->contacts = fem_calloc((size_t)count, sizeof(solver_contact *));
    c->work = fem_alloc(SOLVER_CONTACT_WORK(most), sizeof *c->work);
    c->load = fem_alloc(6 + (size_t)most, sizeof *c->load);
    if (c->contacts && c->work && c->load) return FEM_OK;
    scene_contacts_destroy(c);
    return fem_fail(FEM_NO_MEMORY, "no memory for contact");
}

// Where contact is a load that stays over a step its springs must be soft against the step.
fem_status scene_contacts_add(scene_contacts *c, int domain, const solver_samples *samples, const double *Mqq,
                              double mass) {
    fem_status             status = FEM_OK;
    solver_contact_options options = c->s->contact;
    double                 h = c->s->tree.options.time_step;
    FEM_TRY(solver_contact_create(&c->contacts[domain], samples, &options));
    double rate = c->implicit ? 0 : h * h * solver_contact_rate(c->contacts[domain], Mqq, mass);
    if (rate > 0.2) {
        options.stiffness *= 0.2 / rate;
        solver_contact_destroy(c->contacts[domain]);
        c->contacts[domain] = NULL;
        FEM_TRY(solver_contact_create(&c->contacts[domain], samples, &options));
        c->softened++;
    }
    for (int k = 0; k < c->s->obstacle_count; k++)
        FEM_TRY(solver_contact_add(c->contacts[domain], &c->s->obstacles[k].shape, NULL));
    if (c->implicit) FEM_TRY(solver_tree_set_contact(c->tree, domain, c->contacts[domain]));
done:
    return status;
}

fem_status scene_contacts_note(const scene_contacts *c, const char *of, char **notes) {
    char text[200];
    if (c->softened == 0) return FEM_OK;
    snprintf(text, sizeof text, "contact of %d of %d %s is softer than asked for, as the time step allows", c->softened,
             c->count, of);
    return scene_add_note(notes, text);
}

fem_status scene_contacts_apply(scene_contacts *c, double from, double to) {
    fem_status status = FEM_OK;
    double     h = to - from;
    for (int i = 0; i < c->count; i++) {
        solver_frame_motion frame;
        for (int k = 0; k < c->s->obstacle_count; k++) {
            if (c->s->obstacles[k].move.count == 0) continue;
            solver_obstacle moved = scene_obstacle_at(&c->s->obstacles[k], from, to);
            FEM_TRY(solver_contact_move(c->contacts[i], k, &moved));
        }
        if (c->implicit) continue;
        solver_tree_frame(c->tree, i, &frame);
        solver_contact_load_domain(c->contacts[i], &frame, solver_tree_q(c->tree, i), solver_tree_dq(c->tree, i), h,
                                   h / 2, c->work, c->load);
        FEM_TRY(solver_tree_set_load(c->tree, i, c->load, c->load + 6));
    }
done:
    return status;
}

void scene_contacts_report(const scene_contacts *c, scene_result *result) {
    for (int i = 0; i < c->count; i++) {
        if (!c->contacts[i]) continue;
        solver_contact_report r = solver_contact_get_report(c->contacts[i]);
        result->contact.contacts += r.contacts;
        result->contact.depth = fmax(result->contact.depth, r.depth);
        result->contact.energy += r.energy;
        result->contact.evaluations += r.evaluations;
        result->contact.total_contacts += r.total_contacts;
        scene_contact_force(c->contacts[i], c->s->obstacle_count, result->contact_force);
    }
}
