import { provideGoProgram } from "./go-program.mjs";

/** Where the registry of images is that tests of containers pull from. */
export function provideRegistry() {
  return provideGoProgram({
    name: "registry",
    packagePath: "github.com/google/go-containerregistry/cmd/registry",
    version: "v0.22.1",
    moduleSum: "h1:RZuuSYhTvlDvtsK+NkutoCZ//C0X2ebLK8X8l3ULs84=",
    purpose: "Tests of images",
  });
}
