import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { languages, programsOf } from "@sandpiper/protocol";
import type { Check } from "./check.ts";

/** The search path inside a sandbox: the host image lacks languages that are installed elsewhere. */
const directories = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

export function checkLanguages(): Check {
  const present = languages.filter((language) => programsOf(language).some(isInstalled));
  const missing = languages.filter((language) => !present.includes(language));
  const detail = `in the host image: ${present.join(", ") || "none"}`;
  if (missing.length === 0) return { name: "languages", status: "ok", detail };
  return {
    name: "languages",
    status: "warning",
    detail: `${detail}; missing: ${missing.join(", ")}`,
    hint: "Install the missing languages in /usr on this machine, or pass --rootfs with a directory that has them.",
  };
}

function isInstalled(program: string): boolean {
  return directories.some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
