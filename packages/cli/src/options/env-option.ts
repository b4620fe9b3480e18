import { usageError } from "../command/usage-error.ts";

/** `--env NAME=VALUE` sets a variable, `--env NAME` hands on the caller's. */
export function parseEnv(given: readonly string[], callerEnv: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = {};
  for (const text of given) {
    const equals = text.indexOf("=");
    const name = equals === -1 ? text : text.slice(0, equals);
    if (name === "") throw usageError(`--env ${text}: the name is missing`, "write --env NAME=VALUE or --env NAME");
    const value = equals === -1 ? callerEnv[name] : text.slice(equals + 1);
    if (value === undefined) {
      throw usageError(`--env ${name}: ${name} is not set here`, `write --env ${name}=VALUE, or set ${name} first`);
    }
    env[name] = value;
  }
  return env;
}
