import { createProviderFixture } from "../../host/testing/provider-fixture.ts";
import { GvisorProvider, type GvisorProviderOptions } from "../provider.ts";

export const createGvisorFixture = () =>
  createProviderFixture({
    createProvider: (options: GvisorProviderOptions) => new GvisorProvider(options),
    config: { diskMib: 64 },
    program: new URL("host-program.ts", import.meta.url),
  });
