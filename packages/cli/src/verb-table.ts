import type { Verb } from "./verb.ts";

/** Every verb, loaded only when it is used. */
export const verbTable: Readonly<Record<string, () => Promise<Verb>>> = {
  run: async () => (await import("./verbs/run.ts")).runVerb,
  shell: async () => (await import("./verbs/shell.ts")).shellVerb,
  doctor: async () => (await import("./verbs/doctor.ts")).doctorVerb,
  completion: async () => (await import("./verbs/completion.ts")).completionVerb,
  help: async () => (await import("./verbs/help.ts")).helpVerb,
  version: async () => (await import("./verbs/version.ts")).versionVerb,
};
