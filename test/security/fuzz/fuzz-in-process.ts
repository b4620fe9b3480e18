import fc from "fast-check";
import { collectGarbage } from "../../collect-garbage.ts";

/** `SANDPIPER_FUZZ=full` sends 10,000 inputs to each interface; `SANDPIPER_FUZZ_SEED` repeats a run or starts another. */
const isFull = process.env["SANDPIPER_FUZZ"] === "full";
const seed = Number(process.env["SANDPIPER_FUZZ_SEED"] ?? 20_261_116);
const FULL_INPUTS = 10_000;

/** An input that takes longer has made the program hang. */
const HANG_MS = 20_000;
/** Growth between the first fifth and the last input, whatever their number. */
const MOST_GROWTH_BYTES = 24 * 1024 * 1024;

/** Of a test that sends all inputs. */
export const fuzzTimeoutMs = isFull ? 3_600_000 : 30_000;

export interface FuzzTarget<Input> {
  readonly name: string;
  readonly inputs: fc.Arbitrary<Input>;
  /** Sends one input. Resolves to a word for its outcome; rejects if the outcome is not allowed. */
  readonly send: (input: Input) => Promise<string>;
  /** Without `SANDPIPER_FUZZ=full`. */
  readonly shortInputs: number;
  /** Known attacks, which are always sent. */
  readonly examples?: readonly Input[];
}

/** Sends malformed inputs to code of this process. Rejects with a small failing input and its seed, or with what has grown. */
export async function fuzz<Input>(target: FuzzTarget<Input>): Promise<Readonly<Record<string, number>>> {
  const { name, inputs, send, shortInputs, examples = [] } = target;
  const outcomes: Record<string, number> = {};
  const property = fc.asyncProperty(inputs, async (input) => {
    const outcome = await withoutHang(send(input));
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  });
  const count = isFull ? FULL_INPUTS : shortInputs;
  const first = Math.ceil(count / 5);
  const startedAtMs = performance.now();
  await fc.assert(property, { numRuns: first, seed, examples: examples.map((example) => [example]) });
  const before = await heldBytes();
  await fc.assert(property, { numRuns: count - first, seed: seed + 1 });
  const after = await heldBytes();
  if (after - before > MOST_GROWTH_BYTES) throw new Error(`${name}: memory grew from ${before} to ${after} bytes`);
  if (isFull) {
    const seconds = Math.round((performance.now() - startedAtMs) / 1000);
    console.log(JSON.stringify({ name, seed, inputs: count, seconds, before, after, outcomes }));
  }
  return outcomes;
}

async function withoutHang<T>(work: Promise<T>): Promise<T> {
  const hung = Promise.withResolvers<never>();
  const timer = setTimeout(() => hung.reject(new Error(`no outcome within ${HANG_MS} ms`)), HANG_MS);
  try {
    return await Promise.race([work, hung.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Heap and buffers in use, after garbage collection. */
async function heldBytes(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
