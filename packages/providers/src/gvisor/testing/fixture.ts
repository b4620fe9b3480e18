import { createProviderFixture } from "../../host/testing/provider-fixture.ts";
import type { GvisorOptions } from "../host.ts";
import { GvisorProvider } from "../provider.ts";

export const createGvisorFixture = () =>
  createProviderFixture({
    createProvider: (options: Partial<GvisorOptions>) => new GvisorProvider(options),
    config: { diskMib: 64 },
    program: new URL("host-program.ts", import.meta.url),
  });
