// Rotations as glTF wants them: quaternions x, y, z, w, and their packed form.
#include "libscene/glb_internal.h"

// From the largest of the four squares, 4 q_k^2 = 1 +- R00 +- R11 +- R22, which is at least 1. [Shepperd 1978]
void quaternion_from_matrix(double q[4], const double R[9]) {
    double trace = R[0] + R[4] + R[8], best = trace;
    int    k = 3;
    for (int i = 0; i < 3; i++)
        if (R[4 * i] > best) best = R[4 * i], k = i;
    if (k == 3) {
        q[0] = R[7] - R[5], q[1] = R[2] - R[6], q[2] = R[3] - R[1], q[3] = 1 + trace;
    } else {
        int i = k, j = (k + 1) % 3, l = (k + 2) % 3;
        q[i] = 1 + R[4 * i] - R[4 * j] - R[4 * l];
        q[j] = R[3 * j + i] + R[3 * i + j];
        q[l] = R[3 * l + i] + R[3 * i + l];
        q[3] = R[3 * l + j] - R[3 * j + l];
    }
    double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++) q[i] /= norm;
}

void quaternion_to_matrix(double R[9], const double q[4]) {
    double x = q[0], y = q[1], z = q[2], w = q[3], s = 2 / (x * x + y * y + z * z + w * w);
    R[0] = 1 - s * (y * y + z * z), R[1] = s * (x * y - z * w), R[2] = s * (x * z + y * w);
    R[3] = s * (x * y + z * w), R[4] = 1 - s * (x * x + z * z), R[5] = s * (y * z - x * w);
    R[6] = s * (x * z - y * w), R[7] = s * (y * z + x * w), R[8] = 1 - s * (x * x + y * y);
}

void quaternion_pack(int16_t packed[4], const double q[4]) {
    for (int i = 0; i < 4; i++) packed[i] = (int16_t)lround(fmin(fmax(q[i], -1), 1) * 32767);
}

void quaternion_unpack(double q[4], const int16_t packed[4]) {
    double norm = 0;
    for (int i = 0; i < 4; i++) {
        q[i] = fmax(packed[i] / 32767.0, -1);
        norm += q[i] * q[i];
    }
    norm = sqrt(norm);
    if (norm < 1e-3) { // no quaternion at all
        q[0] = q[1] = q[2] = 0, q[3] = 1;
        return;
    }
    for (int i = 0; i < 4; i++) q[i] /= norm;
}
