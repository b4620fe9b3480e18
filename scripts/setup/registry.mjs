import { provideGoProgram } from "./go-program.mjs";

/** Where the registry of images is that tests of containers pull from. */
export function provideRegistry() {
  return provideGoProgram({
    name: "registry",
    packagePath: "github.com/distribution/distribution/v3/cmd/registry",
    version: "v3.0.0",
    moduleSum: "h1:q4R8wemdRQDClzoNNStftB2ZAfqOiN6UX90KJc4HjyM=",
    purpose: "Tests of images",
  });
}
