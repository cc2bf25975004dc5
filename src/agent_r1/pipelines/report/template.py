"""The HTML of the report."""

TEMPLATE = """{% macro scores(of) %}
{% for key in policies %}
<td class="{{ key }}">
{%- if of.get(key) is not none %}
<span class="bar"><i style="width: {{ (100 * of[key]) | round(1) }}%"></i></span>
{%- endif %}
{{- of.get(key) | score }}</td>
{% endfor %}
{% endmacro %}
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Agent-R1 · {{ results.experiment }}</title>
<style>
:root { --ink: #1f2937; --muted: #6b7280; --line: #e5e7eb; --soft: #f9fafb; --good: #047857;
        --bad: #b91c1c; --base: {{ colors.base }}; --sft: {{ colors.sft }}; --rl: {{ colors.rl }}; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--soft); color: var(--ink);
       font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 72px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -.02em; }
h2 { font-size: 19px; margin: 0 0 2px; letter-spacing: -.01em; }
p { margin: 0 0 14px; }
.muted { color: var(--muted); }
section { background: white; border: 1px solid var(--line); border-radius: 14px;
          padding: 22px 24px; margin-top: 22px; overflow-x: auto; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 14px;
         margin-top: 26px; }
.card { background: white; border: 1px solid var(--line); border-radius: 14px;
        padding: 16px 18px; }
.card b { display: block; font-size: 30px; line-height: 1.2; letter-spacing: -.02em;
          font-variant-numeric: tabular-nums; }
.card.base, .card.sft, .card.rl { border-top: 4px solid var(--tone); padding-top: 13px; }
.base { --tone: var(--base); } .sft { --tone: var(--sft); } .rl { --tone: var(--rl); }
svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { font-weight: 600; font-size: 13px; color: var(--muted); text-align: right;
     padding: 8px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th[title] { cursor: help; text-decoration: underline dotted #cbd5e1; text-underline-offset: 4px; }
td { text-align: right; padding: 7px 10px; border-bottom: 1px solid #f3f4f6; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr.group td { padding-top: 20px; border-bottom-color: var(--line); }
tr:last-child td { border-bottom: none; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 9px;
       background: var(--tone); }
.bar { position: relative; display: inline-block; width: 150px; height: 9px; margin-right: 10px;
       border-radius: 5px; background: #f3f4f6; overflow: hidden; }
.bar i { position: absolute; inset: 0 auto 0 0; border-radius: 5px; background: var(--tone); }
.small .bar { width: 52px; height: 7px; margin-right: 8px; }
.small th, .small td { padding-left: 7px; padding-right: 7px; }
.small th { white-space: normal; vertical-align: bottom; }
.small th:first-child, .small td:first-child { padding-left: 0; }
.up { color: var(--good); } .down { color: var(--bad); }
.zero { color: var(--good); font-weight: 600; } .leak { color: var(--bad); font-weight: 700; }
details { margin-top: 22px; } summary { cursor: pointer; font-weight: 600; padding: 4px 0; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 10px;
      padding: 14px 16px; overflow-x: auto; font-size: 12.5px; line-height: 1.5; }
footer { margin-top: 28px; color: var(--muted); font-size: 13px; }
</style>
</head>
<body>
<main>
<h1>{{ results.experiment }}</h1>
<p class="muted">Agent-R1 · {{ parameters.environment.name }} ·
{{ parameters.advantage.estimator | upper }}
· {{ results.iterations }} iteration{{ "" if results.iterations == 1 else "s" }}
· seed {{ parameters.seed }} · {{ results.wall_seconds | duration }}</p>

<div class="cards">
{% for key, name in policies.items() %}
  <div class="card {{ key }}"><span class="muted">{{ name }}, held out</span>
    <b>{{ headline[key] | score }}</b><span class="muted">exact match</span></div>
{% endfor %}
{% if headline.rl is not none and headline.sft is not none %}
  {% set gain = headline.rl - headline.sft %}
  <div class="card"><span class="muted">What RL added</span>
    <b class="{{ 'up' if gain >= 0 else 'down' }}">{{ gain | signed }}</b>
    <span class="muted">over SFT, {{ unseen }}</span></div>
{% endif %}
</div>

<section>
<h2>Learning curves</h2>
<p class="muted">Iteration 0 is the policy that reinforcement learning starts from.</p>
{{ figure | safe }}
</section>

{% if splits %}
<section>
<h2>Before and after</h2>
<p class="muted">Base model, after supervised fine-tuning, and after reinforcement learning, on
questions that training never asks.</p>
<table>
<tr><th></th>
{% for _, name, about in columns %}
<th title="{{ about }}">{{ name }}</th>
{% endfor %}
</tr>
{% for split in splits %}
<tr class="group"><td colspan="{{ columns | length + 1 }}"><strong>{{ split.title }}</strong>
<span class="muted">· {{ split.subtitle }} · {{ split.n }} questions</span></td></tr>
{% for key, row in split.rows.items() %}
<tr class="{{ key }}"><td><span class="dot"></span>{{ policies[key] }}</td>
{% for column, _, _ in columns %}
<td>
{%- if column == "exact_match" %}
<span class="bar"><i style="width: {{ (100 * (row[column] or 0)) | round(1) }}%"></i></span>
{%- endif %}
{{- row[column] | score }}</td>
{% endfor %}
</tr>
{% endfor %}
{% endfor %}
</table>
</section>
{% endif %}

{% if families %}
<section class="small">
{% if entities %}
<h2>Held-out entities, by kind of question</h2>
<p class="muted">Exact match of each policy; and how many of the entities that these questions are
about occur in a training question or in a demonstration.</p>
{% else %}
<h2>Held out, by kind of task</h2>
<p class="muted">Exact match of each policy.</p>
{% endif %}
<table>
<tr><th>Family</th><th>Questions</th>
{% for name in policies.values() %}
<th>{{ name }}</th>
{% endfor %}
{% if entities %}
<th>Entities</th><th>seen in training</th><th>in demon&shy;strations</th>
{%- endif %}
</tr>
{% for row in families %}
<tr><td>{{ row.exposure.family | family }}</td><td>{{ row.exposure.questions }}</td>
{{ scores(row.scores) }}
{% if entities %}
<td>{{ row.exposure.entities }}</td>
{% for count in (row.exposure.in_training, row.exposure.in_demonstrations) %}
<td class="{{ 'leak' if count else 'zero' }}">{{ count }}</td>
{% endfor %}
{% endif %}
</tr>
{% endfor %}
</table>
{% for split in other_families %}
<details><summary>{{ split.title }}, by kind of question</summary>
<table>
<tr><th>Family</th><th>Evaluated</th>
{% for name in policies.values() %}
<th>{{ name }}</th>
{% endfor %}
</tr>
{% for row in split.rows %}
<tr><td>{{ row.family | family }}</td><td>{{ row.n }}</td>
{{ scores(row.scores) }}
</tr>
{% endfor %}
</table>
</details>
{% endfor %}
</section>
{% endif %}

<section>
<h2>How it was done</h2>
<p class="muted">Time in each stage, all iterations together; the rest is in the manifests.</p>
<table>
<tr><th>Stage</th><th>Time</th><th>Share</th></tr>
{% for node, seconds in results.stage_seconds.items() %}
<tr><td>{{ node }}</td><td>{{ seconds | duration }}</td>
<td>{{ (100 * seconds / (results.wall_seconds or 1)) | round(1) }} %</td></tr>
{% endfor %}
</table>

{% if curves %}
<details><summary>Every iteration in numbers</summary>
<table>
<tr><th>Iteration</th><th>Trajectories</th><th>Reward</th><th>Correct</th><th>Validation</th>
<th>Validation, greedy</th><th>KL</th><th>Entropy</th></tr>
{% for row in curves %}
<tr><td>{{ row.iteration }}</td><td>{{ row.sampled | score(0) }}</td>
<td>{{ row.reward | score(3) }}</td><td>{{ row.correct | score(3) }}</td>
<td>{{ row.validation | score(3) }}</td><td>{{ row.validation_greedy | score(3) }}</td>
<td>{{ row.kl | score(4) }}</td><td>{{ row.entropy | score(4) }}</td></tr>
{% endfor %}
</table>
</details>
{% endif %}
<details><summary>All settings</summary>
<pre>{{ settings }}</pre>
</details>
</section>
<footer>Exact match: the answer equals an accepted one after lower-casing and removing punctuation,
articles and surplus spaces. Sampled figures are means over several attempts at the rollout
temperature.</footer>
</main>
</body>
</html>
"""
