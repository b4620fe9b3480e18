import { fileURLToPath } from "node:url";

/** The root of this clone, without a slash at its end. */
export const repoDirectory = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");
