import type { Verb } from "./verb.ts";

/** Every verb, loaded only when it is used. */
export const verbTable: Readonly<Record<string, () => Promise<Verb>>> = {
  run: async () => (await import("./verbs/run.ts")).runVerb,
  shell: async () => (await import("./verbs/shell.ts")).shellVerb,
  up: async () => (await import("./verbs/up.ts")).upVerb,
  create: async () => (await import("./verbs/create.ts")).createVerb,
  ls: async () => (await import("./verbs/ls.ts")).lsVerb,
  exec: async () => (await import("./verbs/exec.ts")).execVerb,
  ps: async () => (await import("./verbs/ps.ts")).psVerb,
  logs: async () => (await import("./verbs/logs.ts")).logsVerb,
  kill: async () => (await import("./verbs/kill.ts")).killVerb,
  cp: async () => (await import("./verbs/cp.ts")).cpVerb,
  rm: async () => (await import("./verbs/rm.ts")).rmVerb,
  events: async () => (await import("./verbs/events.ts")).eventsVerb,
  stats: async () => (await import("./verbs/stats.ts")).statsVerb,
  keys: async () => (await import("./verbs/keys.ts")).keysVerb,
  pool: async () => (await import("./verbs/pool.ts")).poolVerb,
  doctor: async () => (await import("./verbs/doctor.ts")).doctorVerb,
  completion: async () => (await import("./verbs/completion.ts")).completionVerb,
  help: async () => (await import("./verbs/help.ts")).helpVerb,
  version: async () => (await import("./verbs/version.ts")).versionVerb,
};
