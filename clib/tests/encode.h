/* encode.h: the encoders against a vector that has been decoded. Owns the comparisons; see encode.c. */
#ifndef ENCODE_H
#define ENCODE_H

#include "run.h"

/* Encodes what `run` has decoded of the vector, in every way there is, and compares with its canonical wire. */
void encode_again(const struct vector *vector, const struct run *run);

/* Encodes the value of a vector that is not to be decoded. */
void encode_only(const struct vector *vector);

#endif
