/** The languages of source code, with other names for them and the programs that run them, the preferred one first. */
const table = {
  python: { aliases: ["python3", "py"], programs: ["python3", "python"] },
  javascript: { aliases: ["node", "js"], programs: ["node"] },
  /** Its types are removed before it enters a sandbox, so that every version of node runs it. */
  typescript: { aliases: ["ts"], programs: ["node"] },
  bash: { aliases: [], programs: ["bash"] },
  sh: { aliases: [], programs: ["sh"] },
} as const satisfies Record<string, { readonly aliases: readonly string[]; readonly programs: readonly string[] }>;

export type Language = keyof typeof table;

export const languages = Object.keys(table) as readonly Language[];

/** Finds a language by its name or an alias. */
export function findLanguage(text: string): Language | undefined {
  return languages.find((name) => name === text || (table[name].aliases as readonly string[]).includes(text));
}

/** The programs that can run a language, the preferred one first. */
export function programsOf(language: Language): readonly string[] {
  return table[language].programs;
}
