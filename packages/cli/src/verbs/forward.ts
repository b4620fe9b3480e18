import { Interruption } from "../command/interruption.ts";
import type { Verb } from "../command/verb.ts";
import { type Forwarding, forwardPort } from "../forward/forward-port.ts";
import { parsePort } from "../options/port-option.ts";
import { quietOption } from "../options/shared-options.ts";
import { noticeOf, printJson } from "../output/print.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const forwardVerb: Verb = {
  name: "forward",
  summary: "forward TCP ports of this machine to ports of a sandbox",
  operands: ["SANDBOX", "PORT[:LOCAL]…"],
  options: [{ name: "json", summary: "print one JSON object for each port when it listens" }, quietOption],
  details:
    "Listens on 127.0.0.1, at the same port unless LOCAL names another; 0 picks a free one. Forwards any number of connections until Ctrl-C. The sandbox wakes when the first one comes.",
  examples: ["sandpiper forward build 5432", "sandpiper forward build 8000:0 9229"],
  learnMore: "docs/previews.md",
  async run(arguments_) {
    const wanted = arguments_.operands.slice(1).map(parseForwarding);
    const sandbox = await firstSandbox(arguments_);
    const notice = noticeOf(arguments_);
    using interruption = new Interruption();
    const { signal } = interruption;
    using open = new DisposableStack();
    for (const forwarding of wanted) {
      const { address, port, localPort } = open.use(await forwardPort({ sandbox, notice, signal, ...forwarding }));
      if (arguments_.has("json")) await printJson({ sandbox: sandbox.id, port, localPort, address });
      else notice(`forwarding ${address} to port ${port} of sandbox ${sandbox.id}; end it with Ctrl-C`);
    }
    return await interruption.exitCodeOf(async () => {
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    });
  },
};

function parseForwarding(text: string): Forwarding {
  const [inside = "", local = inside] = text.split(/:(.*)/s);
  return { port: parsePort(inside), localPort: parsePort(local, { allowsZero: true }) };
}
