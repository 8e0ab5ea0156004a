// Cuts one domain into parts along level sets of the distance from its seeds.
//
// Any choice of sets of the level tree (decompose_levels.c) cuts the domain into a tree of parts: the faces around a
// set all lead to lower elements, which belong to the part around it and to no other. Where the body has a handle these
// faces fall into several patches: such sets are left out unless loops are allowed. Parts are cut in two, again and
// again, where the area of the cut is least for what it cuts off.
#include "libdomain/decompose_cut.h"

#include <string.h>

// ---- cuts ------------------------------------------------------------------------------------------------------

// Forbids the cuts of the level tree that would divide a patch: those between its nodes. The lowest number is always
// that of a node whose descendants are done; it is divided from the others unless it is the only one left.
static fem_status keep_patches_whole(domain_cutter *c, const domain_cut *cut, const domain_levels *tree,
                                     unsigned char *allowed) {
    double *key = fem_alloc((size_t)tree->nodes, sizeof *key);
    if (!key) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d cuts", tree->nodes);
    for (int i = 0; i < tree->nodes; i++) key[i] = i;
    c->queue.key = key;
    for (int p = 0; p < cut->patch_count; p++) {
        for (int i = cut->patch_start[p]; i < cut->patch_start[p + 1]; i++) {
            int f = cut->patch_faces[i], a = c->local[c->t->pair[2 * (size_t)f]];
            domain_heap_push(&c->queue, tree->node_of[a >= 0 ? a : c->local[c->t->pair[2 * (size_t)f + 1]]]);
        }
        while (c->queue.count > 1) {
            int node = domain_heap_pop(&c->queue);
            allowed[node] = 0;
            domain_heap_push(&c->queue, tree->parent[node]);
        }
        domain_heap_pop(&c->queue);
    }
    fem_free(key);
    return FEM_OK;
}

// Parts thinner than this are avoided: thickness (volume over area of the widest interface) over width (root of that
// area). A slice between two interfaces that wide has hardly any motion of its own. Whatever
// holds more than a part of LARGEST of the elements is cut all the same.
static const double THINNEST = 0.1, LARGEST = 0.35;

typedef struct part {
    int    begin, end; // its nodes in `members`, ascending
    int    size;       // elements
    double volume;     // m^3
    double widest;     // area of its largest interface so far, m^2
    int    cut;        // node whose set its best cut takes off, -1: it has none
    double merit;      // of that cut
} part;

typedef struct chooser {
    const domain_cut    *cut;
    const domain_levels *tree;
    unsigned char       *allowed;  // per node: may its set be cut off?
    int                 *members;  // nodes by part
    double              *attached; // per node: area of the largest interface to a part that was cut off here
    int                 *below;    // per node: elements of its part in its set
    double              *volume;   // per node: their volume
    double              *widest;   // per node: area of their largest interface
    double              *key;      // per part: order of cutting
    unsigned char       *moved;    // per node; 0 between uses
    int                 *spare;    // per node
    double               thinnest;
} chooser;

static bool too_thin(double volume, double area, double thinnest) { return volume < thinnest * area * sqrt(area); }

// Finds the cut of a part that has the least area A for the n elements on its smaller side: least A / n^(2/3), which
// does not depend on the size of things; A / n, which prefers halves, where the part holds more than LARGEST of the
// elements. Parts are cut in the order of merit: large ones at their necks first.
static void find_best_cut(const chooser *c, part *p) {
    const domain_levels *tree = c->tree;
    int                  top = c->members[p->end - 1]; // the highest number is the node nearest to the seeds
    double               least_cost = INFINITY;
    bool                 large = p->size > LARGEST * c->cut->element_count;
    double               thinnest = large ? 0 : c->thinnest;
    p->cut = -1;
    for (int i = p->begin; i < p->end; i++) {
        int node = c->members[i];
        c->below[node] = tree->weight[node], c->volume[node] = tree->volume[node], c->widest[node] = c->attached[node];
    }
    for (int i = p->begin; i < p->end; i++) {
        int node = c->members[i], above = tree->parent[node], n = c->below[node];
        if (node == top) break;
        c->below[above] += n, c->volume[above] += c->volume[node];
        c->widest[above] = fmax(c->widest[above], c->widest[node]);
        if (n > p->size - n) n = p->size - n;
        if (!c->allowed[node] || n < c->cut->least) continue;
        double cost = tree->area[node] / (large ? n : cbrt((double)n * n));
        if (cost >= least_cost || too_thin(c->volume[node], fmax(tree->area[node], c->widest[node]), thinnest) ||
            too_thin(p->volume - c->volume[node], fmax(tree->area[node], p->widest), thinnest))
            continue;
        least_cost = cost;
        p->cut = node, p->merit = sqrt(p->size) / cost;
    }
}

// Moves the members of a part below `node` behind the others; returns the place of the first of them.
static int divide(chooser *c, int node, const part *p) {
    int kept = p->begin, count = 0;
    for (int i = p->end - 1; i >= p->begin; i--) { // parents first
        int at = c->members[i], above = c->tree->parent[at];
        c->moved[at] = at == node || (above >= 0 && c->moved[above]);
    }
    for (int i = p->begin; i < p->end; i++) {
        if (c->moved[c->members[i]])
            c->spare[count++] = c->members[i];
        else
            c->members[kept++] = c->members[i];
    }
    memcpy(c->members + kept, c->spare, (size_t)count * sizeof *c->spare);
    for (int i = 0; i < count; i++) c->moved[c->spare[i]] = 0;
    return kept;
}

// Divides a part by its best cut.
static void take_cut(chooser *c, part *from, part *off) {
    const domain_levels *tree = c->tree;
    int                  node = from->cut, above = tree->parent[node];
    double               area = tree->area[node];
    int                  place = divide(c, node, from);
    *off = (part){.begin = place, .end = from->end, .size = 0, .widest = area};
    for (int i = place; i < from->end; i++) {
        off->size += tree->weight[c->members[i]], off->volume += tree->volume[c->members[i]];
        off->widest = fmax(off->widest, c->attached[c->members[i]]);
    }
    from->end = place, from->size -= off->size, from->volume -= off->volume;
    from->widest = fmax(from->widest, area);
    c->attached[above] = fmax(c->attached[above], area);
}

// Looks for the best cut of a part and enters it into the queue. Parts of more than a quarter of the domain come first,
// whatever the merit.
static void offer(domain_cutter *cutter, const chooser *c, part *parts, int index) {
    part  *p = &parts[index];
    double share = (double)p->size / c->cut->element_count;
    find_best_cut(c, p);
    if (p->cut < 0) return; // it stays as it is
    c->key[index] = share > 0.25 ? -1e300 * share : -p->merit;
    domain_heap_push(&cutter->queue, index);
}

// Takes the best cut of all parts until there are as many as wanted or none is left; returns how many there are.
static int choose_cuts(domain_cutter *cutter, chooser *c, int count, int wanted, part *parts) {
    cutter->queue.key = c->key;
    for (int i = 0; i < count; i++) offer(cutter, c, parts, i);
    while (count < wanted && cutter->queue.count > 0) {
        int best = domain_heap_pop(&cutter->queue);
        take_cut(c, &parts[best], &parts[count]);
        offer(cutter, c, parts, best);
        offer(cutter, c, parts, count++);
    }
    while (cutter->queue.count > 0) domain_heap_pop(&cutter->queue);
    return count;
}

static fem_status chooser_create(chooser *c, const domain_cut *cut, const domain_levels *tree) {
    size_t n = (size_t)tree->nodes;
    *c = (chooser){.cut = cut, .tree = tree, .thinnest = THINNEST};
    c->allowed = fem_alloc(n, 1), c->moved = fem_calloc(n, 1);
    c->members = fem_alloc(n, sizeof *c->members), c->below = fem_alloc(n, sizeof *c->below);
    c->spare = fem_alloc(n, sizeof *c->spare), c->attached = fem_calloc(n, sizeof *c->attached);
    c->volume = fem_alloc(n, sizeof *c->volume), c->widest = fem_alloc(n, sizeof *c->widest);
    c->key = fem_alloc((size_t)cut->wanted, sizeof *c->key);
    if (!c->allowed || !c->moved || !c->members || !c->below || !c->spare || !c->attached || !c->volume || !c->widest ||
        !c->key)
        return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d cuts", tree->nodes);
    for (int i = 0; i < tree->nodes; i++) c->allowed[i] = cut->loops || tree->patches[i] == 1, c->members[i] = i;
    return FEM_OK;
}

static void chooser_destroy(chooser *c) {
    fem_free(c->allowed), fem_free(c->moved), fem_free(c->members), fem_free(c->below), fem_free(c->spare);
    fem_free(c->attached), fem_free(c->volume), fem_free(c->widest), fem_free(c->key);
}

// ---- pieces ----------------------------------------------------------------------------------------------------

// Level sets are ragged: a part may have crumbs that no face joins to it. A crumb leads down to the part below its own,
// so it can go there, unless it also touches a part above; that one then joins its own part again, which makes the two
// one piece. (A crumb that stays behind would close a loop.)
typedef struct mender {
    int  count;  // parts
    int *from;   // per part: the part that it was cut off from, -1 for the one at the seeds
    int *forest; // over parts: which were joined again
    int *below;  // per part that was not joined to a lower number: the part below it as things are
    int *piece;  // per element of the domain
    int *queue;  // elements, piece by piece
    int *start;  // per piece: its first place in the queue
    int *main;   // per part: its largest piece
} mender;

static void mender_destroy(mender *m) {
    fem_free(m->below), fem_free(m->forest), fem_free(m->piece), fem_free(m->queue), fem_free(m->start);
    fem_free(m->main), fem_free(m->from);
}

// Lists the face-connected pieces of all parts; returns how many.
static int find_pieces(const domain_cutter *c, const domain_cut *cut, const int *label, mender *m) {
    const domain_topology *t = c->t;
    int                    count = 0, found = 0;
    for (int i = 0; i < cut->element_count; i++) m->piece[i] = -1;
    for (int i = 0; i < m->count; i++) m->main[i] = -1;
    for (int i = 0; i < cut->element_count; i++) {
        if (m->piece[i] >= 0) continue;
        m->start[count] = found;
        m->piece[i] = count, m->queue[found++] = i;
        for (int at = m->start[count]; at < found; at++) {
            int e = cut->elements[m->queue[at]];
            for (int k = t->face_start[e]; k < t->face_start[e + 1]; k++) {
                int other = c->local[domain_across(t, t->faces[k], e)];
                if (other < 0 || m->piece[other] >= 0 || label[other] != label[i]) continue;
                m->piece[other] = count, m->queue[found++] = other;
            }
        }
        int *main = &m->main[label[i]];
        m->start[count + 1] = found;
        if (*main < 0 || found - m->start[count] > m->start[*main + 1] - m->start[*main]) *main = count;
        count++;
    }
    return count;
}

// The parts below, after some were joined: of a joined set that of the member which was cut off from outside the set.
static void find_below(mender *m) {
    for (int i = 0; i < m->count; i++) {
        int own = domain_find(m->forest, i), from = m->from[i] < 0 ? -1 : domain_find(m->forest, m->from[i]);
        if (from != own) m->below[own] = from;
    }
}

// Gives one crumb away or joins the parts above it to its own; false when it can do neither (at the seeds).
static bool mend_crumb(const domain_cutter *c, const domain_cut *cut, int *label, mender *m, int piece) {
    const domain_topology *t = c->t;
    int                    own = label[m->queue[m->start[piece]]];
    bool                   above = false, below = false;
    for (int at = m->start[piece]; at < m->start[piece + 1]; at++) {
        int e = cut->elements[m->queue[at]];
        for (int k = t->face_start[e]; k < t->face_start[e + 1]; k++) {
            int other = c->local[domain_across(t, t->faces[k], e)];
            if (other < 0 || label[other] == own) continue;
            if (label[other] == m->below[own]) below = true;
            if (m->below[label[other]] == own) domain_join(m->forest, label[other], own), above = true;
        }
    }
    if (above) return true;
    for (int at = m->start[piece]; below && at < m->start[piece + 1]; at++) label[m->queue[at]] = m->below[own];
    return below;
}

// Mends until every part is in one piece. What still is not after some rounds is settled with the other loops.
// tops: per part, the node that it hangs on, -1 for the one at the seeds.
static fem_status mend_pieces(const domain_cutter *c, const domain_cut *cut, const domain_levels *tree, const int *tops,
                              int *label, int *count) {
    fem_status status = FEM_OK;
    size_t     n = (size_t)cut->element_count, many = (size_t)*count;
    mender     m = {.count = *count};
    int       *owner = fem_alloc((size_t)tree->nodes, sizeof *owner), mended = 0;
    enum { ROUNDS = 16 };
    m.from = fem_alloc(many, sizeof *m.from), m.below = fem_alloc(many, sizeof *m.below);
    m.forest = fem_alloc(many, sizeof *m.forest), m.main = fem_alloc(many, sizeof *m.main);
    m.piece = fem_alloc(n, sizeof *m.piece), m.queue = fem_alloc(n, sizeof *m.queue);
    m.start = fem_alloc(n + 1, sizeof *m.start);
    if (!m.from || !m.below || !m.forest || !m.main || !m.piece || !m.queue || !m.start || !owner) {
        status = fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d parts", *count);
        goto done;
    }
    for (int i = 0; i < cut->element_count; i++) owner[tree->node_of[i]] = label[i];
    for (int i = 0; i < m.count; i++) {
        m.forest[i] = i;
        m.from[i] = tops[i] < 0 ? -1 : owner[tops[i]];
    }
    for (int round = 0; round < ROUNDS && (round == 0 || mended > 0); round++) {
        int pieces = find_pieces(c, cut, label, &m);
        find_below(&m);
        mended = 0;
        for (int k = 0; k < pieces; k++)
            if (m.main[label[m.queue[m.start[k]]]] != k) mended += mend_crumb(c, cut, label, &m, k);
        for (int i = 0; i < cut->element_count; i++) label[i] = domain_find(m.forest, label[i]);
    }
    *count = 0;
    for (int i = 0; i < m.count; i++) // a joined part has the lowest number of its members: it comes first
        m.main[i] = m.forest[i] == i ? (*count)++ : -1;
    for (int i = 0; i < cut->element_count; i++) label[i] = m.main[label[i]];
done:
    mender_destroy(&m);
    fem_free(owner);
    return status;
}

fem_status domain_cutter_run(domain_cutter *cutter, const domain_cut *cut, int *out, int *count) {
    fem_status    status = FEM_OK;
    domain_levels tree = {0};
    chooser       c = {0};
    part         *parts = fem_calloc((size_t)cut->wanted, sizeof *parts);
    if (!parts) return fem_fail(FEM_NO_MEMORY, "decompose: no memory for %d parts", cut->wanted);
    for (int i = 0; i < cut->element_count; i++) cutter->local[cut->elements[i]] = i;
    FEM_TRY(domain_levels_create(&tree, cutter, cut));
    FEM_TRY(chooser_create(&c, cut, &tree));
    FEM_TRY(keep_patches_whole(cutter, cut, &tree, c.allowed));
    parts[0] = (part){.begin = 0, .end = tree.nodes, .size = cut->element_count};
    for (int i = 0; i < tree.nodes; i++) parts[0].volume += tree.volume[i];
    *count = choose_cuts(cutter, &c, 1, cut->wanted, parts);
    c.thinnest = 0;
    if (*count < cut->needed) *count = choose_cuts(cutter, &c, *count, cut->needed, parts);
    for (int i = 0; i < *count; i++)
        for (int k = parts[i].begin; k < parts[i].end; k++) c.below[c.members[k]] = i;
    for (int i = 0; i < cut->element_count; i++) out[i] = c.below[tree.node_of[i]];
    if (cut->loops) goto done;
    for (int i = 0; i < *count; i++) c.spare[i] = tree.parent[c.members[parts[i].end - 1]];
    FEM_TRY(mend_pieces(cutter, cut, &tree, c.spare, out, count));
done:
    for (int i = 0; i < cut->element_count; i++) cutter->local[cut->elements[i]] = -1;
    domain_levels_destroy(&tree);
    chooser_destroy(&c);
    fem_free(parts);
    return status;
}
