/* SPDX-License-Identifier: Apache-2.0 */
/* The cart-pole of Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning
 * control problems", IEEE Transactions on Systems, Man, and Cybernetics 13 (1983), with the numbers of Gym's
 * CartPole-v1: a pole stands on a cart that is pushed left or right, 50 times a second.  The observation has the
 * positions but not the speeds, so that balancing the pole needs a memory. */
#ifndef CARTPOLE_H
#define CARTPOLE_H

#include <stdbool.h>

#include "leat/rng.h"

enum { cartpole_observed = 2, cartpole_actions = 2, cartpole_limit = 500 /* steps of an episode */ };

typedef struct cartpole {
    double x, x_dot;         /* m, m/s */
    double theta, theta_dot; /* rad from upright, rad/s */
    int steps;
} cartpole;

/* Begins an episode with random positions and speeds, each in [-0.05, 0.05). */
void cartpole_reset(cartpole *c, leat_rng *rng);

/* Pushes left (0) or right (1) and moves by one time step.  False if the pole fell or the cart left its track. */
bool cartpole_step(cartpole *c, int action);

/* Writes position and angle, scaled so that an episode ends at -4 and 4. */
void cartpole_observe(const cartpole *c, float *observed);

#endif
