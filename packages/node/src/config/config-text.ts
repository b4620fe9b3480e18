import type { ConfigField } from "./config-field.ts";

/**
 * Converts text from the environment or the command line. Invalid text is returned unchanged, so that the schema refuses
 * it with the error text of that field.
 */
export function valueOfText(field: ConfigField, text: string): unknown {
  if (field.isNullable && text === "none") return null;
  switch (field.kind) {
    case "number":
      return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
    case "flag":
      return text === "true" || text === "1" ? true : text === "false" || text === "0" ? false : text;
    case "texts":
      return text
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== "");
    case "json":
      return parsedOrText(text);
    default:
      return text;
  }
}

function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
