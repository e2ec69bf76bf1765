declare module "virtual:core-wasm" {
  const gzippedBase64: string;
  export default gzippedBase64;
}
declare module "virtual:core-script" {
  interface Core {
    ccall(name: string, returns: string, types: string[], values: unknown[]): string;
  }
  export default function createCore(options: { wasmBinary: Uint8Array }): Promise<Core>;
}
