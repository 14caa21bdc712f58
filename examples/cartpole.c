/* SPDX-License-Identifier: Apache-2.0 */
/* The cart-pole's equations of motion, by Euler's method. */
#include "cartpole.h"

#include <math.h>

static const double gravity = 9.8, cart_mass = 1, pole_mass = 0.1, half_length = 0.5, force = 10,
                    step_s = 0.02;
static const double most_x = 2.4, most_theta = 12 * 3.14159265358979 / 180;

void cartpole_reset(cartpole *c, leat_rng *rng) {
    c->x = 0.1 * leat_rng_uniform(rng) - 0.05;
    c->x_dot = 0.1 * leat_rng_uniform(rng) - 0.05;
    c->theta = 0.1 * leat_rng_uniform(rng) - 0.05;
    c->theta_dot = 0.1 * leat_rng_uniform(rng) - 0.05;
    c->steps = 0;
}

bool cartpole_step(cartpole *c, int action) {
    double mass = cart_mass + pole_mass, sine = sin(c->theta), cosine = cos(c->theta);
    double push =
        ((action ? force : -force) + pole_mass * half_length * c->theta_dot * c->theta_dot * sine) / mass;
    double turn =
        (gravity * sine - cosine * push) / (half_length * (4.0 / 3 - pole_mass * cosine * cosine / mass));
    double pull = push - pole_mass * half_length * turn * cosine / mass;
    c->x += step_s * c->x_dot;
    c->x_dot += step_s * pull;
    c->theta += step_s * c->theta_dot;
    c->theta_dot += step_s * turn;
    ++c->steps;
    return fabs(c->x) <= most_x && fabs(c->theta) <= most_theta;
}

void cartpole_observe(const cartpole *c, float *observed) {
    observed[0] = (float)(4 * c->x / most_x);
    observed[1] = (float)(4 * c->theta / most_theta);
}
