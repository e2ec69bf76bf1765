// Small tokenizers of the kinds that specsim reads, and the tokens that Hugging Face's own library gives.
//
//     cp -r scripts/npm/tokenizers /tmp/tokenizers && npm ci --ignore-scripts --prefix /tmp/tokenizers
//     NODE_PATH=/tmp/tokenizers/node_modules node scripts/golden/tokenizer_golden.mjs
//
// writes tests/data/tokenizers/*.json and tests/data/tokenizer_golden.json. The vocabularies are trained here, on the prompts of
// tests/data/prompts; expressions, normalisers and processors are those of the published tokenizers.
import fs from 'fs';
import path from 'path';
import { createRequire } from 'module';

const require = createRequire(process.env.NODE_PATH ? path.join(process.env.NODE_PATH, 'x.js') : import.meta.url);
const { Tokenizer } = require('@anush008/tokenizers');

const FOLDER = 'tests/data/tokenizers';
const LLAMA3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const QWEN2 = LLAMA3.replace('{1,3}', '');

const lines = fs.readFileSync('tests/data/prompts/calibration.jsonl', 'utf8').trim().split('\n').map((line) => JSON.parse(line).prompt ?? '');
const corpus = lines.join('\n') + "\n 12 345 1234567 don't we'll I'VE you're caf\u00e9 na\u00efve \u0416\u0443\u043a \u4f60\u597d\n".repeat(20);

// Merges the most common pair of neighbours within words repeatedly; ties go to the first in the alphabet.
function train(words, alphabet, merges) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const list = [...counts].map(([word, count]) => ({ symbols: [...word], count }));
  const vocab = [...new Set([...alphabet, ...list.flatMap((word) => word.symbols)])].sort();
  const made = [];
  while (made.length < merges) {
    const pairs = new Map();
    for (const { symbols, count } of list)
      for (let i = 0; i + 1 < symbols.length; ++i) {
        const key = symbols[i] + '\u0000' + symbols[i + 1];
        pairs.set(key, (pairs.get(key) ?? 0) + count);
      }
    const [best] = [...pairs].reduce((a, b) => (b[1] > a[1] || (b[1] === a[1] && b[0] < a[0]) ? b : a));
    const [left, right] = best.split('\u0000');
    made.push([left, right]);
    vocab.push(left + right);
    for (const word of list)
      for (let i = 0; i + 1 < word.symbols.length; ++i)
        if (word.symbols[i] === left && word.symbols[i + 1] === right) word.symbols.splice(i, 2, left + right);
  }
  const model = { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false,
    byte_fallback: false, ignore_merges: false, vocab: Object.fromEntries([...new Set(vocab)].map((piece, i) => [piece, i])), merges: made };
  return { version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null,
    decoder: null, model };
}

const letterOf = [];  // byte to character, as in GPT-2
let next = 256;
for (let b = 0; b < 256; ++b) letterOf.push(String.fromCodePoint((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : next++));
const gpt2Words = corpus.match(/'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu);
const byteLevel = train(gpt2Words.map((word) => [...Buffer.from(word)].map((b) => letterOf[b]).join('')), letterOf, 400);
const metaspace = train(corpus.replaceAll('\n', ' ').split(' ').map((word) => '\u2581' + word), [], 300);
byteLevel.model.vocab[[...'\u0120LORD'].join('')] ??= Object.keys(byteLevel.model.vocab).length;  // a word that no merge produces

const special = (id, content, more = {}) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more });
const size = Object.keys(byteLevel.model.vocab).length;
const splitBy = (expression) => ({
  type: 'Sequence',
  pretokenizers: [
    { type: 'Split', pattern: { Regex: expression }, behavior: 'Isolated', invert: false },
    { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
  ],
});
const template = (id, name) => ({
  type: 'TemplateProcessing',
  single: [{ SpecialToken: { id: name, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
  pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 0 } }],
  special_tokens: { [name]: { id: name, ids: [id], tokens: [name] } },
});
const plain = { ...byteLevel, post_processor: null, decoder: null };

// A vocabulary in the form of SentencePiece's converters: bytes first; unknown characters fall back to them.
const withBytes = structuredClone(metaspace);
const vocab = { '<unk>': 0, '<s>': 1, '</s>': 2 };
for (let b = 0; b < 256; ++b) vocab[`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`] = 3 + b;
Object.keys(metaspace.model.vocab).sort((a, b) => metaspace.model.vocab[a] - metaspace.model.vocab[b]).forEach((piece) => (vocab[piece] = Object.keys(vocab).length));
withBytes.model = { ...metaspace.model, vocab, byte_fallback: true, fuse_unk: true, unk_token: '<unk>' };
withBytes.added_tokens = [special(0, '<unk>'), special(1, '<s>'), special(2, '</s>')];
withBytes.post_processor = template(1, '<s>');

const tokenizers = {
  gpt2: { ...plain, added_tokens: [special(size, '<|endoftext|>', { normalized: true })],
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true } },
  llama3: { ...plain, model: { ...byteLevel.model, ignore_merges: true }, pre_tokenizer: splitBy(LLAMA3),
    added_tokens: [special(size, '<|begin_of_text|>'), special(size + 1, '<|eot_id|>')],
    post_processor: { type: 'Sequence', processors: [{ type: 'ByteLevel', add_prefix_space: true, trim_offsets: false, use_regex: true },
      template(size, '<|begin_of_text|>')] } },
  qwen2: { ...plain, normalizer: { type: 'NFC' }, pre_tokenizer: splitBy(QWEN2),
    added_tokens: [special(size, '<|im_start|>'), special(size + 1, '<|im'), special(size + 2, '<tool>', { special: false, lstrip: true, rstrip: true })] },
  smollm: { ...plain, added_tokens: [], pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'Digits', individual_digits: true },
    { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true }] } },
  llama2: withBytes,
  mistral: { ...withBytes, normalizer: null, pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'first', split: false } },
  metaspace: { ...withBytes, normalizer: null, pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'always', split: true } },
  gemma: { ...withBytes, normalizer: { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' },
    pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false } },
};

const texts = [
  '', ' ', '   ', '\n', ' \n \n  x', 'a', 'And it came to pass', 'don\'t I\'LL we\'Ve \'S \'\u017f x\'s\'t', '\'re\'ll\'d\'m', '12345 6 78,901.5', ' 1234', 'x1y22z333',
  'caf\u00e9 cafe\u0301 \u1e9b\u0323 \u212b \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab', '\u4f60\u597d\uff0c\u4e16\u754c\uff01', '\u0416\u0443\u043a\u0438 \u043d\u0430 \u0434\u0435\u0440\u0435\u0432\u0435', '\ud83d\ude00 \ud83d\udc69\u200d\ud83d\udcbb!\n', 'tab\tand\r\nline\r\n\r\n  end  ',
  '\u00a0no\u00a0break\u2003em\u3000wide \u0085 \u2028', '\u2160\u00bd\u00b2 \u0663\u0664\u0665', 'if (x[i] != NULL) { return -1; }  // why?\n\n\treturn;', '  two  spaces   three', ' ', '_under_score__', '\u0301alone', '<|endoftext|>', 'a<|endoftext|>b <|begin_of_text|>c<|eot_id|>',
  '<|im_start|>user\nhi<|im x', 'a  <tool>  b<tool>', '<s>x</s> y <unk>z', '\u2581low\u2581line', 'And it came to pass in those days, that there went out a decree from Caesar Augustus', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '!!!???...---', '\u200b\u200bzero\ufeff', 'A\u030a\u0327',
];
let seed = 12345;
const below = (n) => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0), Math.floor((seed / 4294967296) * n));
const letters = [...'aeiotnsrhld ETAO  \n\r\t\'.,!?0123456789\u00e9\u00df\u0416\u4f60\u0301\u0327\u00a0\u3000\u2581\ud83d\ude00\u00bd\u0663_-<|>'];
for (let i = 0; i < 120; ++i) {
  let text = '';
  for (let n = 1 + below(24); n > 0; --n) text += below(6) === 0 ? ['the', ' and', "'s", '  ', 'in', ' LORD'][below(6)] : letters[below(letters.length)];
  texts.push(text);
}

fs.mkdirSync(FOLDER, { recursive: true });
const golden = [];
for (const [name, json] of Object.entries(tokenizers)) {
  const text = JSON.stringify(json);
  fs.writeFileSync(`${FOLDER}/${name}.json`, text + '\n');
  const tokenizer = Tokenizer.fromString(text);
  for (const one of texts) {
    const ids = (await tokenizer.encode(one, null, { addSpecialTokens: false })).getIds();
    const whole = (await tokenizer.encode(one)).getIds();
    golden.push(JSON.stringify({ tokenizer: name, text: one, ids, before: whole.slice(0, whole.length - ids.length) }));
  }
}
fs.writeFileSync('tests/data/tokenizer_golden.json', '[' + golden.join(',\n ') + ']\n');
