// Owns: where the server is and how much is done: WEFT_PORT, and APPS_JOBS. Does not own: what is done.

export const connection = { host: "127.0.0.1", port: Number(process.env.WEFT_PORT), maxRetriesPerRequest: null };

// Jobs of the large test.
export const jobs = Number(process.env.APPS_JOBS ?? 500);

// A promise with its ends outside.
export function expected() {
    const ends = {};
    ends.done = new Promise((resolve, reject) => Object.assign(ends, { resolve, reject }));
    return ends;
}
