import { discover } from "./discover.ts";
import type { Subject, SubjectDefinition } from "./subject.ts";
import type { Workspace } from "./workspace.ts";

export type OpenSubject = (name: string) => Promise<Subject>;

/** Opens each subject once, on first use. */
export function subjectOpener(definitions: readonly SubjectDefinition[], workspace: Workspace): OpenSubject {
  const opened = new Map<string, Promise<Subject>>();
  const open = async (name: string) => {
    const definition = definitions.find((one) => one.name === name);
    if (definition === undefined) throw new Error(`no subject ${name}; bench/subjects/ has one file per subject`);
    return await definition.open(workspace);
  };
  return (name) => opened.getOrInsertComputed(name, open);
}

export async function discoverSubjects(): Promise<SubjectDefinition[]> {
  const modules = await discover<{ subject: SubjectDefinition }>(new URL("subjects/", import.meta.url));
  return modules.map(({ module }) => module.subject);
}
