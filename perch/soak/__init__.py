"""Soaks: the lines of flows and the samples of hosts, judged over the whole time.

lines, flow, pace, course, drift, stats    a flow's lines to its coverage, figures and anomalies
samples, host, processes                   a host's samples to counters, links, memory, handles
bounds                                     their limits
told, judge, blind                         what is found, and all of it as one document
"""
