import { type Duplex, finished } from "node:stream";

/** Copies bytes in both directions; each direction ends separately. Resolves when both streams have ended or broken. */
export async function joinStreams(one: Duplex, other: Duplex): Promise<void> {
  one.pipe(other);
  other.pipe(one);
  await Promise.all([untilEnd(one, other), untilEnd(other, one)]);
}

/** Without the one, nothing can reach the other. */
function untilEnd(one: Duplex, other: Duplex): Promise<void> {
  return new Promise((resolve) =>
    finished(one, (error) => {
      if (error) other.destroy();
      resolve();
    }),
  );
}
