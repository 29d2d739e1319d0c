// Looks at the console with Chromium, by Playwright and axe-core. Ends with 1 and a line for each thing that does not hold.
import { chromium } from 'playwright-core';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const [program, folder, executablePath] = process.argv.slice(2);
const axe = fs.readFileSync(path.join(folder, 'node_modules/axe-core/axe.min.js'), 'utf8');
const failures = [];
const check = (holds, what) => {
  if (!holds) failures.push(what);
};

// Waits for a condition, for at most ten seconds.
const until = async (what, condition) => {
  const end = Date.now() + 10000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
    await new Promise(done => setTimeout(done, 20));
  }
};

// Two servers that answer, one that refuses, one without a check.
const origin = http.createServer((request, response) => {
  response.setHeader('Content-Type', request.url.endsWith('.wasm') ? 'application/wasm' : 'text/html');
  response.end('<p>terse compresses what is worth compressing.</p>\n'.repeat(400));
});
origin.listen(0, '127.0.0.1');
await once(origin, 'listening');
const server = `127.0.0.1:${origin.address().port}`;
const file = path.join(folder, 'terse.cfg');
fs.writeFileSync(file, `
global
    log stdout format raw local0 err
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 2s
    compression on
frontend web
    bind 127.0.0.1:0
    default_backend app
backend app
    option httpchk GET /
    default-server inter 200ms
    server one ${server} check
    server two ${server} check
    server three 127.0.0.1:1 check
    server four ${server}
backend other
    server five ${server} check
listen operator
    bind 127.0.0.1:0
    stats enable
    stats uri /
    stats admin if TRUE
listen viewer
    bind 127.0.0.1:0
    stats enable
    stats uri /
`);
const terse = spawn(program, ['-W', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] });
let said = '';
terse.stdout.on('data', bytes => (said += bytes));
terse.stderr.on('data', bytes => (said += bytes));
const address = name => until(`an address of ${name}`, () => said.match(new RegExp(`${name} listens on (http://[0-9.:]+)`))?.[1]);

const ask = (url, { method = 'GET', headers = {}, body } = {}) => new Promise((done, fail) => {
  const request = http.request(url, { method, headers, agent: false }, response => {
    let text = '';
    response.on('data', bytes => (text += bytes)).on('end', () => done({ status: response.statusCode, text, headers: response.headers }));
  });
  request.on('error', fail).end(body);
});

let browser;
try {
  const [web, operator, viewer] = [await address('web'), await address('operator'), await address('viewer')];
  const state = async name => {
    const { servers } = JSON.parse((await ask(`${operator}/;api=servers`)).text);
    return servers.find(server => server.name === name).state;
  };
  for (const coding of ['gzip', 'br', 'zstd', 'identity']) await ask(`${web}/`, { headers: { 'Accept-Encoding': coding } });
  await ask(`${web}/code.wasm`, { headers: { 'Accept-Encoding': 'br' } });
  await until('the server that refuses', async () => (await state('three')).startsWith('DOWN'));
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

  // The page in a context of its own: what it logs and asks for is checked.
  const open = async (base, options) => {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on('console', message => check(!/Refused to|Content Security Policy/.test(message.text()), `CSP: ${message.text()}`));
    page.on('pageerror', error => check(false, `script: ${error}`));
    page.on('request', request => check(request.url().startsWith(base), `a request elsewhere: ${request.url()}`));
    const answer = await page.goto(`${base}/`);
    check(answer.status() === 200, `${base} answers with ${answer.status()}`);
    return { context, page };
  };

  for (const width of [390, 1280, 1920]) {
    for (const colorScheme of ['light', 'dark']) {
      for (const javaScriptEnabled of [true, false]) {
        const what = `${width}, ${colorScheme}, ${javaScriptEnabled ? 'with' : 'without'} script`;
        const { context, page } = await open(operator, { viewport: { width, height: 900 }, colorScheme, javaScriptEnabled });
        if (javaScriptEnabled) {
          const [scrolls, client] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
          check(scrolls <= client, `${what}: the page is ${scrolls} pixels wide`);
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }));
          for (const { id, impact, help, nodes } of violations.filter(found => ['serious', 'critical'].includes(found.impact))) {
            check(false, `${what}: axe: ${impact} ${id}: ${help}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join(' | ')}`);
          }
        }
        for (const name of ['one', 'three', 'four']) {
          const row = page.locator(`tr[data-k="app/${name}"] .s`);
          const box = await row.boundingBox();
          check(box && box.x >= 0 && box.x + box.width <= width, `${what}: the state of ${name} is not on the screen`);
        }
        check(/three/.test(await page.locator('#top').textContent()), `${what}: nothing says that three is down`);
        await page.screenshot({ path: path.join(folder, `${width}-${colorScheme}${javaScriptEnabled ? '' : '-no-script'}.png`), fullPage: true });
        await context.close();
      }
    }
  }

  // By mouse.
  let { context, page } = await open(operator, { viewport: { width: 1280, height: 900 } });
  page.on('dialog', dialog => dialog.accept());
  const tick = name => page.locator(`tr[data-k="app/${name}"] input`);
  const answers = [];
  page.on('response', answer => answers.push(answer.url()));
  await tick('one').check();
  await until('two refreshes', () => answers.filter(url => url.includes(';part=rows')).length >= 2);
  check(await tick('one').isChecked(), 'a tick is lost by a refresh');
  await page.locator('form', { has: tick('one') }).locator('select').selectOption('drain');
  await page.locator('form', { has: tick('one') }).getByRole('button').click();
  await until('a drain by mouse', async () => (await state('one')).startsWith('DRAIN'));

  // By keys alone.
  await page.goto(`${operator}/`);
  await page.keyboard.press('/');
  await page.keyboard.type('app/one');
  await page.keyboard.press('Escape');
  for (const key of ['j', 'x']) await page.keyboard.press(key);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('r')]);
  await until('ready by keys', async () => (await state('one')).startsWith('UP'));
  await page.keyboard.press('?');
  check(await page.locator('#keys').evaluate(help => help.open), 'the list of keys does not open');
  await context.close();

  // A last server that is refused stays.
  ({ context, page } = await open(operator, { viewport: { width: 1280, height: 900 } }));
  let question = '';
  page.on('dialog', dialog => {
    question = dialog.message();
    dialog.dismiss();
  });
  await page.locator('tr[data-k="other/five"] input').check();
  await page.locator('form', { has: page.locator('tr[data-k="other/five"]') }).locator('select').selectOption('maint');
  await page.locator('form', { has: page.locator('tr[data-k="other/five"]') }).getByRole('button').click();
  check(question.includes('No other server is left'), `the last server is taken without a question: '${question}'`);
  check((await state('five')).startsWith('UP'), 'a dismissed question has an effect');
  await context.close();

  // By the form, without script.
  ({ context, page } = await open(operator, { viewport: { width: 390, height: 900 }, javaScriptEnabled: false }));
  const form = page.locator('form', { has: page.locator('tr[data-k="app/two"]') });
  await page.locator('tr[data-k="app/two"] input').check();
  await form.locator('select').selectOption('maint');
  await form.getByRole('button').click();
  await until('maintenance by form', async () => (await state('two')).startsWith('MAINT'));
  await context.close();

  // By the API, and by those who may not.
  const post = (base, headers = {}) => ask(`${base}/;api=server`, {
    method: 'POST', headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ backend: 'app', servers: ['two'], action: 'ready' }),
  });
  const refused = [
    ['a viewer', await post(viewer)],
    ['another site', await post(operator, { Origin: 'http://evil.example' })],
    ['a name that leads here by rebinding', await post(operator, { Host: 'evil.example', Origin: 'http://evil.example' })],
  ];
  for (const [who, answer] of refused) check(answer.status === 403, `${who} gets ${answer.status}`);
  check((await state('two')).startsWith('MAINT'), 'a refused change has an effect');
  const done = await post(operator);
  check(done.status === 200 && JSON.parse(done.text).changed === 1, `the API answers ${done.status} ${done.text}`);
  await until('ready by the API', async () => (await state('two')).startsWith('UP'));
  ({ context, page } = await open(viewer, { viewport: { width: 1280, height: 900 } }));
  check((await page.locator('main form, main input[type=checkbox], main button').count()) === 0, 'a viewer sees what he may not do');
  await context.close();

  // An open page does not hold an old process.
  ({ context, page } = await open(operator, { viewport: { width: 1280, height: 900 } }));
  const child = () => fs.readFileSync(`/proc/${terse.pid}/task/${terse.pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  const former = child();
  terse.kill('SIGUSR2');
  await until('a new process', () => child().some(pid => !former.includes(pid)) && said.includes('Loading success'));
  const begun = Date.now();
  await until('the end of the former process', () => !child().includes(former[0]));
  check(Date.now() - begun <= 1000, `the former process stays for ${Date.now() - begun} ms under an open page`);
  await context.close();
} catch (error) {
  failures.push(`${error.stack}\n${said}`);
} finally {
  await browser?.close();
  terse.kill('SIGTERM');
  await once(terse, 'exit');
  origin.close();
}
failures.forEach(failure => console.log(`FAILED  ${failure}`));
console.log(failures.length ? `${failures.length} things do not hold` : `The console holds; pictures are in ${folder}`);
process.exit(failures.length ? 1 : 0);
