// Extracts measured kernels of latent attention (MLA), configs/kernels/tables/attention_latent_aic.csv.xz, from a checkout of
// ai-dynamo/aiconfigurator.
//
//     cp -r scripts/npm/parquet /tmp/parquet && npm ci --ignore-scripts --prefix /tmp/parquet
//     NODE_PATH=/tmp/parquet/node_modules node scripts/kernels/latent_table.mjs CHECKOUT/aic-core/src/aiconfigurator_core/systems/data |
//       xz > configs/kernels/tables/attention_latent_aic.csv.xz
//
// One row is attention of one layer over the cached vectors of DeepSeek-V3, one new token per sequence, in a captured graph. For each GPU and engine
// the newest version is used, and of several rows of one shape their median. vLLM's tables are left out because its kernels were launched one by one,
// 100 to 200 us each. SGLang's tables over caches in fp8 on Hopper are left out because the timed code first converts the cache to 16 bits: 16
// sequences of 8,192 tokens take 282 us, while whole layers of the same engine, including products, take 84 us (wideep_generation_mla).
import fs from 'fs';
import path from 'path';
import { createRequire } from 'module';
import { pathToFileURL } from 'url';

const require = createRequire(process.env.NODE_PATH ? path.join(process.env.NODE_PATH, 'x.js') : import.meta.url);
const library = (name) => import(pathToFileURL(require.resolve(name)).href);
const { asyncBufferFromFile, parquetReadObjects } = await library('hyparquet');
const { compressors } = await library('hyparquet-compressors');

const GPUS = {
  a100_sxm: 'a100-80gb-sxm', b200_sxm: 'b200', b300_sxm: 'b300', gb200: 'gb200', gb300: 'gb300', h100_sxm: 'h100-sxm', h200_sxm: 'h200-sxm',
  l40s: 'l40s', rtx_pro_6000_server: 'rtx-pro-6000'
};
const ENGINES = ['sglang', 'trtllm'];
const L2_MB = { // configs/hardware
  'a100-80gb-sxm': 40, b200: 126, b300: 126, gb200: 126, gb300: 126, 'h100-sxm': 50, 'h200-sxm': 62.9, l40s: 96, 'rtx-pro-6000': 128
};
const [LATENT, ROPE_DIM] = [512, 64];

const numbers = (version) => (version.match(/\d+/g) ?? []).map(Number);
function newer(a, b) {
  const [x, y] = [numbers(a), numbers(b)];
  for (let i = 0; i < Math.max(x.length, y.length); ++i)
    if ((x[i] ?? 0) !== (y[i] ?? 0)) return (x[i] ?? 0) > (y[i] ?? 0);
  return false;
}
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const folder = process.argv[2];
if (!folder) {
  console.error('latent_table: the folder systems/data of a checkout of ai-dynamo/aiconfigurator is missing');
  process.exit(2);
}
const lines = [];
for (const [source, gpu] of Object.entries(GPUS))
  for (const engine of ENGINES) {
    const tables = path.join(folder, source, 'mla', engine);
    let version = '';
    for (const one of fs.existsSync(tables) ? fs.readdirSync(tables) : [])
      if (fs.existsSync(path.join(tables, one, 'generation_mla_perf.parquet')) && (version === '' || newer(one, version))) version = one;
    if (version === '') continue;
    const file = await asyncBufferFromFile(path.join(tables, version, 'generation_mla_perf.parquet'));
    const times = new Map();
    for (const row of await parquetReadObjects({ file, compressors })) {
      const type = row.kv_cache_dtype === 'fp8' ? 'fp8' : 'bfloat16';
      if (type === 'fp8' && row.kernel_source === 'flash_attention') continue;
      const shape = [row.kernel_source, type, Number(row.num_heads), Number(row.batch_size), Number(row.isl) + Number(row.step) - 1];
      const key = shape.join(',');
      if (!times.has(key)) times.set(key, { shape, us: [] });
      times.get(key).us.push(1000 * Number(row.latency));
    }
    for (const { shape, us } of times.values()) {
      const [kernel, type, heads, batch, context] = shape;
      const bytes = batch * (context + 1) * (LATENT + ROPE_DIM) * (type === 'fp8' ? 1 : 2);
      lines.push({ order: [gpu, engine, kernel, type, heads, batch, context],
                   text: [gpu, engine, version, kernel, type, heads, LATENT, ROPE_DIM, batch, 1, context, (bytes / L2_MB[gpu] / 1e6).toPrecision(4),
                          Number(median(us).toPrecision(6))].join(',') });
    }
  }
lines.sort((a, b) => {
  for (let i = 0; i < a.order.length; ++i)
    if (a.order[i] !== b.order[i]) return a.order[i] < b.order[i] ? -1 : 1;
  return 0;
});
console.log(['gpu,engine,version,kernel,kv_dtype,heads,latent,rope_dim,batch,tokens,context,kv_over_l2,us', ...lines.map((line) => line.text)].join('\n'));
