// The material lines of .veg, in both directions.
#include "libfem/mesh_formats.h"

#include <math.h>
#include <string.h>

// The forms of ORTHOTROPIC: how many Poisson's ratios, shear moduli and entries of R follow density E1 E2 E3.
static const struct {
    const char *suffix;
    int         poisson, shear, rotation;
} orthotropic_forms[] = {{"", 3, 3, 9},      {"_N3G3R9", 3, 3, 9}, {"_N3G3", 3, 3, 0}, {"_N1G1R9", 1, 1, 9},
                         {"_N1G1", 1, 1, 0}, {"_N1R9", 1, 0, 9},   {"_N1", 1, 0, 0}};

// One Poisson's ratio and one factor g of the shear moduli stand for all three [Li and Barbic, Stable Orthotropic
// Materials, 2014]: nu_ij = nu sqrt(E_i/E_j), G_ij = g sqrt(E_i E_j) / (2 (1 + nu)). Vega's nu12 is the contraction
// along 2 under tension along 1, as ours; the columns of its rotation, given by rows, are the material axes, as ours.
static void expand_orthotropic(fem_material *m, double nu, double g) {
    const double *E = m->young3;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        m->poisson3[i] = nu * sqrt(E[i] / E[j]);
        m->shear3[i] = g * sqrt(E[i] * E[j]) / (2 * (1 + nu));
    }
}

static fem_status read_numbers(fem_text *scan, int count, double *values) {
    for (int i = 0; i < count; i++) {
        fem_status status = fem_text_double(scan, "a parameter of the material", &values[i]);
        if (status != FEM_OK) return status;
    }
    return FEM_OK;
}

static fem_status read_orthotropic(fem_text *scan, fem_word type, fem_material *m) {
    fem_status status = FEM_OK;
    double     first[4], nu = 0, g = 1;
    size_t     form = 0, forms = sizeof orthotropic_forms / sizeof *orthotropic_forms;
    fem_word   suffix = {type.at + strlen("ORTHOTROPIC"), type.length - strlen("ORTHOTROPIC")};
    char       quote[FEM_QUOTE];
    while (form < forms && !fem_word_is(suffix, orthotropic_forms[form].suffix)) form++;
    if (form == forms)
        return fem_text_fail(scan,
                             "material %s is not supported, expected ORTHOTROPIC with nothing, _N3G3R9, _N3G3, "
                             "_N1G1R9, _N1G1, _N1R9 or _N1 behind it",
                             fem_quote(quote, type.at, type.length));
    m->kind = FEM_ORTHOTROPIC;
    FEM_TRY(read_numbers(scan, 4, first));
    m->density = first[0];
    memcpy(m->young3, first + 1, sizeof m->young3);
    if (orthotropic_forms[form].poisson == 3) {
        FEM_TRY(read_numbers(scan, 3, m->poisson3));
        FEM_TRY(read_numbers(scan, 3, m->shear3));
    } else {
        FEM_TRY(read_numbers(scan, 1, &nu));
        if (orthotropic_forms[form].shear == 1) FEM_TRY(read_numbers(scan, 1, &g));
        if (!(nu > -1 && nu < 0.5)) {
            status = fem_text_fail(scan, "Poisson's ratio is %g, expected between -1 and 0.5", nu);
            goto done;
        }
        expand_orthotropic(m, nu, g);
    }
    if (orthotropic_forms[form].rotation == 9) FEM_TRY(read_numbers(scan, 9, m->frame));
done:
    return status;
}

fem_status fem_veg_read_material(fem_text *scan, fem_material *m) {
    fem_status status = FEM_OK;
    fem_word   type = fem_text_take(scan);
    double     p[4];
    char       quote[FEM_QUOTE];
    if (fem_word_is(type, "ENU")) {
        FEM_TRY(read_numbers(scan, 3, p));
        m->kind = FEM_STVK;
        m->density = p[0], m->young = p[1], m->poisson = p[2];
    } else if (fem_word_is(type, "MOONEYRIVLIN")) {
        FEM_TRY(read_numbers(scan, 4, p));
        m->kind = FEM_MOONEY_RIVLIN;
        m->density = p[0], m->mu01 = p[1], m->mu10 = p[2], m->v1 = p[3];
    } else if (type.length >= 11 && memcmp(type.at, "ORTHOTROPIC", 11) == 0) {
        FEM_TRY(read_orthotropic(scan, type, m));
    } else {
        status = fem_text_fail(scan, "material %s is not supported, expected ENU, ORTHOTROPIC or MOONEYRIVLIN",
                               fem_quote(quote, type.at, type.length));
        goto done;
    }
    FEM_TRY(fem_text_end_line(scan));
    status = fem_material_check(m);
    if (status != FEM_OK) fem_fail_prefix(status, "%s:%lld: ", scan->path, scan->line);
done:
    return status;
}

// Behind commas, as Vega wants them.
static void put_parameters(fem_file *file, int count, const double *values) {
    for (int i = 0; i < count; i++) {
        fem_file_put(file, ",", 1);
        fem_file_put_double(file, ' ', values[i]);
    }
}

fem_status fem_veg_write_material(fem_file *file, const char *name, const fem_material *m) {
    fem_file_print(file, "\n*MATERIAL %s\n", name);
    switch (m->kind) {
    case FEM_STVK:
        fem_file_print(file, "ENU,");
        break;
    case FEM_ORTHOTROPIC:
        fem_file_print(file, "ORTHOTROPIC_N3G3R9,");
        break;
    case FEM_MOONEY_RIVLIN:
        fem_file_print(file, "MOONEYRIVLIN,");
        break;
    default:
        return fem_fail(FEM_BAD_INPUT, "material \"%s\" is of kind %s, which .veg cannot hold: write .vtu", name,
                        fem_material_kind_name(m->kind));
    }
    fem_file_put_double(file, ' ', m->density);
    if (m->kind == FEM_STVK) {
        put_parameters(file, 1, &m->young);
        put_parameters(file, 1, &m->poisson);
    } else if (m->kind == FEM_MOONEY_RIVLIN) {
        put_parameters(file, 1, &m->mu01);
        put_parameters(file, 1, &m->mu10);
        put_parameters(file, 1, &m->v1);
    } else {
        put_parameters(file, 3, m->young3);
        put_parameters(file, 3, m->poisson3);
        put_parameters(file, 3, m->shear3);
        put_parameters(file, 9, m->frame);
    }
    fem_file_print(file, "\n");
    return FEM_OK;
}
