import { Sandbox } from "../sandbox/sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";

/** One sandbox for the tests of one part of the suite, created before them and destroyed after them. */
export function shareSandbox({ framework, provider, config }: ContractContext): () => Sandbox {
  let shared: Sandbox | undefined;
  framework.beforeAll(async () => {
    shared = await Sandbox.create(provider(), { ...config, env: { ...config?.env, CONTRACT: "from config" } });
  });
  framework.afterAll(async () => {
    await shared?.destroy();
  });
  return () => {
    if (shared === undefined) throw new Error("the shared sandbox could not be created");
    return shared;
  };
}

/** Polls until a condition is true; the framework's time limit ends the wait otherwise. */
export async function eventually(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10));
}

export async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** Bytes that look random and are the same in every run. */
export function sampleBytes(size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let state = 0x2545f491;
  for (let at = 0; at < size; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

export function isEqualBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}
