import type { Provider } from "../provider.ts";
import { describeAdoption } from "./adoption-contract.ts";
import { describeCheckpoints } from "./checkpoint-contract.ts";
import { describeCode } from "./code-contract.ts";
import { describeExec } from "./exec-contract.ts";
import { describeFiles } from "./file-contract.ts";
import { describeLeftovers } from "./leftover-contract.ts";
import { describeLife } from "./life-contract.ts";
import { describeNetwork } from "./network-contract.ts";
import { describeProcesses } from "./process-contract.ts";
import type { ContractContext, ProviderContractOptions } from "./provider-contract.ts";

/** The promises of every provider, as tests against the real one. Commands are plain POSIX sh. */
export function describeProvider(
  name: string,
  makeProvider: () => Provider | Promise<Provider>,
  options: ProviderContractOptions,
): void {
  const { describe, it, beforeAll, expect } = options.framework;
  describe(`provider ${name}`, () => {
    let made: Provider | undefined;
    const context: ContractContext = {
      ...options,
      provider() {
        if (made === undefined) throw new Error(`provider ${name} was not created`);
        return made;
      },
    };
    beforeAll(async () => {
      made = await makeProvider();
    });

    it("works on this host", async () => {
      expect(await context.provider().probe()).toMatchObject({ available: true });
    });

    it("declares the capabilities that this suite expects", async () => {
      expect(context.provider().capabilities).toEqual(options.capabilities);
    });

    describeLife(context);
    describeLeftovers(context);
    describeAdoption(context);
    describeExec(context);
    describeProcesses(context);
    describeFiles(context);
    describeCode(context);
    describeNetwork(context);
    describeCheckpoints(context);
  });
}
