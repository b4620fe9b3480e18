import type { Client } from "@sandpiper/sdk";
import type { Syntax } from "../command/syntax.ts";
import { findSandbox, livingSandboxes } from "../target/find-sandbox.ts";
import { type NextOperand, nextOperand } from "./next-operand.ts";

/** The first word of a command line that a completion script runs to get names; not a verb. */
export const COMPLETE_NAMES = "__complete";

/** A user waits for the answer. */
const MAX_SANDBOXES = 32;

/** Shells would interpret other characters, and bash splits words at colons. */
const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** The names of sandboxes, processes, checkpoints, network requests or nodes that fit after the given words. */
export async function completeNames(
  syntax: Syntax,
  words: readonly string[],
  findClient: () => Promise<Client | undefined>,
): Promise<readonly string[]> {
  const next = nextOperand(syntax, words);
  const client = next && (await findClient());
  return client === undefined
    ? []
    : (await namesOf(client, next as NextOperand)).filter((name) => SAFE_NAME.test(name));
}

async function namesOf(client: Client, { kind, sandbox }: NextOperand): Promise<readonly string[]> {
  if (kind === "node") return (await client.nodes.list()).map(({ id }) => id);
  if (kind === "sandbox") return (await livingSandboxes(client)).map(({ id, info }) => nameOr(id, info.name));
  if (sandbox === undefined) return checkpointIds(client);
  const found = await findSandbox(client, sandbox);
  if (kind === "request") return (await found.network.requests()).map(({ id, name }) => nameOr(id, name));
  if (kind === "process") return (await found.processes()).map(({ id }) => id);
  return (await found.checkpoints()).map(({ id, name }) => nameOr(id, name));
}

/** Without their sandbox, checkpoints are named by their whole ids. */
async function checkpointIds(client: Client): Promise<readonly string[]> {
  const newest = (await livingSandboxes(client)).slice(0, MAX_SANDBOXES);
  const lists = await Promise.all(newest.map((sandbox) => sandbox.checkpoints()));
  return lists.flat().map(({ id }) => id);
}

/** The name that a person knows, if a shell takes it as it is. */
function nameOr(id: string, name: string | null): string {
  return name !== null && SAFE_NAME.test(name) ? name : id;
}
