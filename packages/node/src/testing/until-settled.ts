import { expect } from "vitest";

const LOOKS = 4;
const INTERVAL_MS = 100;

/** Waits until a number stops changing: back pressure shows only in what does not happen for a while. */
export async function untilSettled(measure: () => number | Promise<number>): Promise<void> {
  let looks: number[] = [];
  const hasSettled = async () => {
    looks = [...looks, await measure()].slice(-LOOKS);
    return looks.length === LOOKS && looks.every((look) => look === looks[0]);
  };
  await expect.poll(hasSettled, { interval: INTERVAL_MS }).toBe(true);
}
