import { expect } from "vitest";

/** Waits until a number is above zero and no longer changes. */
export async function untilSteady(read: () => number | Promise<number>): Promise<void> {
  let last = 0;
  const isSteady = async () => {
    const before = last;
    last = await read();
    return last > 0 && last === before;
  };
  await expect.poll(isSteady, { interval: 200 }).toBe(true);
}
