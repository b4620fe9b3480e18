import { discover } from "./discover.ts";
import type { Subject, SubjectDefinition } from "./subject.ts";
import type { Workspace } from "./workspace.ts";

/** Opens each subject once, on first use. */
export class Subjects {
  readonly #definitions: readonly SubjectDefinition[];
  readonly #workspace: Workspace;
  readonly #opened = new Map<string, Promise<Subject>>();

  constructor(definitions: readonly SubjectDefinition[], workspace: Workspace) {
    this.#definitions = definitions;
    this.#workspace = workspace;
  }

  open(name: string): Promise<Subject> {
    const opened = this.#opened.get(name) ?? this.#openNow(name);
    this.#opened.set(name, opened);
    return opened;
  }

  async #openNow(name: string): Promise<Subject> {
    const definition = this.#definitions.find((one) => one.name === name);
    if (definition === undefined) throw new Error(`no subject ${name}; bench/subjects/ has one file per subject`);
    return await definition.open(this.#workspace);
  }
}

export async function discoverSubjects(): Promise<SubjectDefinition[]> {
  const modules = await discover<{ subject: SubjectDefinition }>(new URL("subjects/", import.meta.url));
  return modules.map(({ module }) => module.subject);
}
