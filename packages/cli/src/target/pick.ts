import { SandboxError } from "@sandpiper/protocol/error";

/** Something that a command line can name. */
export interface Named {
  readonly id: string;
  readonly name?: string | null;
}

type Kind = "sandbox" | "process" | "checkpoint" | "key" | "machine" | "network_request";

const SHOWN = 4;

/** Resolves an ID, a name, or an unambiguous beginning of an ID. */
export function pick<Item extends Named>(kind: Kind, text: string, items: readonly Item[]): Item {
  const exact = items.find(({ id }) => id === text);
  if (exact !== undefined) return exact;
  const named = items.filter(({ name }) => name === text);
  const candidates = named.length > 0 ? named : items.filter(({ id }) => text !== "" && id.startsWith(text));
  const [only, other] = candidates;
  if (only === undefined) throw notFound(kind, text);
  if (other !== undefined) throw ambiguous(kind, text, candidates);
  return only;
}

function notFound(kind: Kind, text: string): SandboxError {
  return new SandboxError(`no_such_${kind}` as const, {
    message: `${kind.replace("_", " ")} ${JSON.stringify(text)} not found`,
    hint: `use an ID, the beginning of an ID, or a name from "sandpiper ${listings[kind]}"`,
  });
}

const listings = {
  sandbox: "ls",
  process: "ps SANDBOX",
  checkpoint: "checkpoints SANDBOX",
  key: "keys ls",
  machine: "machines ls",
  network_request: "net requests SANDBOX",
};

function ambiguous(kind: Kind, text: string, candidates: readonly Named[]): SandboxError {
  const ids = candidates.slice(0, SHOWN).map(({ id }) => id);
  const more = candidates.length > SHOWN ? ", …" : "";
  return new SandboxError("ambiguous_name", {
    message: `${kind.replace("_", " ")} ${JSON.stringify(text)} is ambiguous, with ${candidates.length} matches: ${ids.join(", ")}${more}`,
    hint: `use more of the ${kind.replace("_", " ")}'s ID`,
  });
}
