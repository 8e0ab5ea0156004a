// "Did you mean": the known name that is nearest to a misspelt one.
// The distance counts insertions, deletions, replacements and exchanges of neighbours (optimal string alignment,
// Damerau 1964); letters that differ only in case count as half.
#include "libscene/internal.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 48 }; // names beyond this are not compared

static int least(int a, int b) { return a < b ? a : b; }

static int replacement_cost(char a, char b) {
    if (a == b) return 0;
    return tolower((unsigned char)a) == tolower((unsigned char)b) ? 1 : 2;
}

// In halves.
static int distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST) return INT_MAX;
    int rows[3][LONGEST + 1]; // of the table over prefixes: row i in rows[i % 3]
    for (size_t j = 0; j <= m; j++) rows[0][j] = 2 * (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = 2 * (int)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 2, last[j - 1] + replacement_cost(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 2);
        }
    }
    return rows[n % 3][m];
}

void suggestion_start(scene_suggestion *s, const char *word) {
    *s = (scene_suggestion){.word = word, .distance = INT_MAX};
}

void suggestion_offer(scene_suggestion *s, const char *candidate) {
    int d = distance(s->word, candidate);
    if (d < s->distance) s->distance = d, s->best = candidate;
    size_t used = strlen(s->known), room = sizeof s->known - used;
    if (strlen(candidate) + 8 < room)
        snprintf(s->known + used, room, "%s%s", s->offered > 0 ? ", " : "", candidate);
    else if (room > 6 && strcmp(s->known + used - (used < 3 ? used : 3), "...") != 0)
        snprintf(s->known + used, room, ", ...");
    s->offered++;
}

const char *suggestion_text(scene_suggestion *s) {
    int near = 2 * least(((int)strlen(s->word) + 2) / 3, 3); // a third of the letters, three at most
    if (s->best && s->distance <= near)
        snprintf(s->text, sizeof s->text, " (did you mean \"%s\"?)", s->best);
    else if (s->offered > 0)
        snprintf(s->text, sizeof s->text, " (known: %s)", s->known);
    else
        snprintf(s->text, sizeof s->text, " (there are none)");
    return s->text;
}
