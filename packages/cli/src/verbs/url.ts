import type { Arguments } from "../command/arguments.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { parsePort } from "../options/port-option.ts";
import { parseDuration } from "../options/values.ts";
import { print, printJson } from "../output/print.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const urlVerb: Verb = {
  name: "url",
  summary: "print a URL that opens a port of a sandbox in a browser",
  operands: ["SANDBOX", "[PORT]"],
  options: [
    { name: "expires", value: "DURATION", summary: "how long the link is valid, at most 30d (default 1h)" },
    { name: "path", value: "PATH", summary: "the page to open, such as /docs?x=1" },
    { name: "public", summary: "open the port to everyone, and print its URL" },
    { name: "private", summary: "make the port private again, and print its URL, which then needs a credential" },
    { name: "revoke", summary: "revoke all links and the traffic token of the sandbox; takes no PORT" },
    { name: "json", summary: "print a JSON object" },
  ],
  examples: ["sandpiper url build 8000", "sandpiper url build 8000 --public", "sandpiper url build --revoke"],
  learnMore: "docs/previews.md",
  async run(arguments_) {
    const [, port] = arguments_.operands;
    const isPublic = accessOf(arguments_);
    const [expiresInMs, path] = [parseDuration(arguments_, "expires"), arguments_.get("path")];
    if (arguments_.has("revoke") !== (port === undefined)) {
      throw usageError("url: give a PORT, or --revoke without one", "see sandpiper url --help");
    }
    if (port === undefined) {
      await (await firstSandbox(arguments_)).revokeLinks();
      return;
    }
    const number = parsePort(port);
    const url = await (await firstSandbox(arguments_)).url(number, { public: isPublic, expiresInMs, path });
    if (arguments_.has("json")) await printJson({ port: number, url });
    else await print(`${url}\n`);
  },
};

/** Undefined for a link, which changes nothing. */
function accessOf(arguments_: Arguments): boolean | undefined {
  const chosen = ["public", "private", "expires"].filter((name) => arguments_.has(name));
  if (chosen.length > 1) {
    throw usageError(`url: --${chosen[0]} cannot be combined with --${chosen[1]}`, "use one of them");
  }
  return chosen[0] === undefined || chosen[0] === "expires" ? undefined : chosen[0] === "public";
}
