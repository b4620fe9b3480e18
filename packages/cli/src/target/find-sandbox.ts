import type { Client, Sandbox } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import { requireNode } from "./find-node.ts";
import { pick } from "./pick.ts";

/** Needs no list of all sandboxes. */
export const FULL_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const BEGINNING_OF_ID = /^[0-9a-f-]{1,36}$/;

/** The sandbox that a command line names first. */
export async function firstSandbox({ operands }: Arguments): Promise<Sandbox> {
  return findSandbox(await requireNode(), operands[0] as string);
}

/** Resolves an ID, the beginning of one, or a name. */
export async function findSandbox(client: Client, text: string): Promise<Sandbox> {
  if (FULL_ID.test(text)) return client.sandboxes.connect(text);
  const named = await Array.fromAsync(client.sandboxes.list({ name: text }));
  if (named.length > 0 || !BEGINNING_OF_ID.test(text)) return pickSandbox(text, named);
  return pickSandbox(text, await Array.fromAsync(client.sandboxes.list()));
}

/** Resolves several with one list. */
export async function findSandboxes(client: Client, texts: readonly string[]): Promise<Sandbox[]> {
  const all = await Array.fromAsync(client.sandboxes.list());
  return texts.map((text) => pickSandbox(text, all));
}

function pickSandbox(text: string, all: readonly Sandbox[]): Sandbox {
  const found = pick(
    "sandbox",
    text,
    all.map((sandbox) => ({ id: sandbox.id, name: sandbox.info.name, sandbox })),
  );
  return found.sandbox;
}

/** All that are not destroyed. */
export async function livingSandboxes(client: Client): Promise<Sandbox[]> {
  const all = await Array.fromAsync(client.sandboxes.list());
  return all.filter(({ info }) => info.state !== "destroyed");
}
