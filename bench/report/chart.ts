/** One bar: a ratio and how far it went to both sides. */
export interface Bar {
  readonly label: string;
  /** Right of the bar. */
  readonly note: string;
  readonly value: number;
  readonly least: number;
  readonly most: number;
  readonly emphasised: boolean;
}

export interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const WIDTH = 880;
const LABEL_WIDTH = 300;
const NOTE_WIDTH = 120;
const PLOT_WIDTH = WIDTH - LABEL_WIDTH - NOTE_WIDTH;
const BAR = 16;
const STEP = 22;
const TITLE = 34;
const MARGIN = 12;

/** No background of its own: it is read on the page's, light or dark. */
const STYLE = `text { font: 12px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600; font-size: 13px }
.note { fill: #59636e } .other { fill: #a8b3bf } .ours { fill: #1a7f64 } .line { stroke: #59636e; fill: none } .one { stroke: #59636e; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .note { fill: #9198a1 } .other { fill: #57606a } .ours { fill: #3fb68b }
.line, .one { stroke: #9198a1 } }`;

/** Horizontal bars, a panel per case, each with its own scale; the dashed line is 1. */
export function barChart(title: string, panels: readonly Panel[]): string {
  let y = MARGIN + STEP;
  const parts = [text(MARGIN, y, title, 'title')];
  for (const panel of panels) {
    parts.push(drawPanel(panel, y));
    y += TITLE + panel.bars.length * STEP;
  }
  const height = y + MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
${parts.join('\n')}
</svg>
`;
}

function drawPanel({ title, bars }: Panel, top: number): string {
  const scale = PLOT_WIDTH / Math.max(1, ...bars.map(({ most }) => most));
  const first = top + TITLE;
  const one = LABEL_WIDTH + scale;
  const unity = `<line class="one" x1="${px(one)}" x2="${px(one)}" y1="${first - 4}" y2="${first + bars.length * STEP - 2}"/>`;
  const drawn = bars.map((bar, index) => drawBar(bar, first + index * STEP, scale));
  return [text(MARGIN, first - 10, title, 'title'), ...drawn, unity].join('\n');
}

function drawBar({ label, note, value, least, most, emphasised }: Bar, top: number, scale: number): string {
  const middle = top + BAR / 2;
  const [from, to] = [LABEL_WIDTH + least * scale, LABEL_WIDTH + most * scale].map(px);
  return [
    text(LABEL_WIDTH - 8, middle + 4, label, emphasised ? 'title' : '', 'end'),
    `<rect class="${emphasised ? 'ours' : 'other'}" x="${LABEL_WIDTH}" y="${top}" width="${px(value * scale)}" height="${BAR}" rx="2"/>`,
    `<path class="line" d="M${from} ${middle}H${to}M${from} ${middle - 3}v6M${to} ${middle - 3}v6"/>`,
    text(WIDTH - MARGIN, middle + 4, note, 'note', 'end'),
  ].join('\n');
}

function text(x: number, y: number, content: string, style: string, anchor = 'start'): string {
  return `<text x="${x}" y="${y}" class="${style}" text-anchor="${anchor}">${escaped(content)}</text>`;
}

function px(value: number): string {
  return value.toFixed(1);
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
