/* SPDX-License-Identifier: Apache-2.0 */
/* The cart-pole of Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control
 * problems", IEEE Transactions on Systems, Man, and Cybernetics 13 (1983), with the numbers of Gym's CartPole-v1: a pole
 * stands on a cart that is pushed left or right, 50 times a second.  What is seen is where they are, not how fast they
 * move: somebody who wants to balance the pole has to remember. */
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

/* Begins an episode: all four numbers from [-0.05, 0.05). */
void cartpole_reset(cartpole *c, leat_rng *rng);

/* Pushes left (0) or right (1).  False: the pole fell or the cart left its track. */
bool cartpole_step(cartpole *c, int action);

/* Position and angle, from -4 to 4, where an episode ends. */
void cartpole_observe(const cartpole *c, float *observed);

#endif
