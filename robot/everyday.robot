*** Settings ***
Documentation       The installed command, one everyday thing per test: settings, formats, going back, resuming,
...                 correcting, applying, errors, checkpoints by hand.
Resource            agents.resource
Test Setup          Make A World
Test Teardown       Clean Up
Suite Teardown      Remove Template


*** Variables ***
${KEY}      sandbox.checkpoint.auto-create-on


*** Test Cases ***
The Config Key Says When Checkpoints Are Made
    Agents    0    config    set    ${KEY}    before_step,after_step
    ${got}=    Agents    0    config    get    ${KEY}
    Should Be Equal    ${got}[data][value]    ${{['before_step', 'after_step']}}
    ${plan}=    Executed    one.txt
    ${reasons}=    Reasons Of    ${plan}
    List Should Contain Value    ${reasons}    before_step
    List Should Contain Value    ${reasons}    after_step
    List Should Not Contain Value    ${reasons}    on_tool_write

An Empty Config Key Switches The Triggers Off
    Agents    0    config    set    ${KEY}    ${EMPTY}
    ${plan}=    Executed    one.txt
    ${reasons}=    Reasons Of    ${plan}
    Remove Values From List    ${reasons}    decision
    Should Be Equal    ${reasons}    ${{['complete']}}

Another Name Of A Trigger Is Normalised
    Agents    0    config    set    ${KEY}    before_tool_execute
    ${got}=    Agents    0    config    get    ${KEY}
    Should Be Equal    ${got}[data][value]    ${{['on_tool_write']}}

A Trigger That Is Not Known Is Refused With All The Names
    ${refused}=    Agents    2    config    set    ${KEY}    on_tool_wirte
    Should Be Equal    ${refused}[data][error][code]    invalid-config-value
    Should Contain    ${refused}[data][error][message]    on_subplan_spawn

A Setting Is Taken Back
    Agents    0    config    set    ${KEY}    before_step
    Agents    0    config    unset    ${KEY}
    ${got}=    Agents    0    config    get    ${KEY}
    Should Be Equal    ${got}[data][origin]    default

JSON And YAML Are The Same Envelope
    ${plan}=    Executed    one.txt
    ${json}=    Agents    0    plan    status    ${plan}
    ${text}=    Printed    yaml    plan    status    ${plan}
    ${yaml}=    From Yaml    ${text}
    Should Be Equal    ${yaml}[data]    ${json}[data]

Plain Is For Pipes And Screen Readers
    ${text}=    Status In    plain
    Should Not Contain    ${text}    \x1b[
    Should Not Match Regexp    ${text}    [\u2500-\u257f]

A Table Has No Colours
    ${text}=    Status In    table
    Should Not Contain    ${text}    \x1b[

Rich Draws Lines Where They Help
    ${plan}=    Use    one.txt
    Agents    0    plan    execute    ${plan}
    ${text}=    Printed    rich    plan    artifacts    ${plan}
    Should Match Regexp    ${text}    [\u2500-\u257f]

Color Has Colours And No Boxes
    ${text}=    Status In    color
    Should Contain    ${text}    \x1b[
    Should Not Match Regexp    ${text}    [\u2502\u256d]

A Format That Is Not Known Is A Wrong Call
    ${command}=    The Command
    ${done}=    Run Process    ${command}    --format    html    plan    list    &{WORLD}
    Should Be Equal As Integers    ${done.rc}    2
    Should Contain    ${done.stderr}    html

A Rollback By Label Can Be Undone
    ${plan}=    Executed    one.txt    two.txt
    ${sandbox}=    Sandbox Of    ${plan}
    ${back}=    Agents    0    plan    rollback    --yes    ${plan}    after file.write one.txt
    Should Be Equal    ${back}[data][changes_reverted]    ${{[{'file': 'two.txt', 'action': 'removed'}]}}
    File Should Not Exist    ${sandbox}/two.txt
    ${listing}=    Agents    0    plan    checkpoint    list    ${plan}
    ${groups}=    Group Ids    ${listing}[data]
    Agents    0    plan    rollback    --yes    ${plan}    ${groups}[-1]
    File Should Exist    ${sandbox}/two.txt

A Checkpoint That Is Not Known Is Refused
    ${plan}=    Executed    one.txt
    ${refused}=    Agents    1    plan    rollback    --yes    ${plan}    before lunch
    Should Be Equal    ${refused}[data][error][code]    checkpoint-not-found

A Plan That Went Back Is Resumed
    ${plan}=    Executed    one.txt    two.txt
    Agents    0    plan    rollback    --yes    ${plan}    after file.write one.txt
    ${told}=    Agents    0    plan    resume    --dry-run    ${plan}
    Should Be Equal As Integers    ${told}[data][next_step]    1
    ${done}=    Agents    0    plan    resume    ${plan}
    Should Be Equal    ${done}[data][state]    complete
    ${sandbox}=    Sandbox Of    ${plan}
    File Should Exist    ${sandbox}/two.txt

A Decision Is Corrected And The Rest Is Kept
    ${plan}=    Executed    one.txt    two.txt
    ${tree}=    Agents    0    plan    tree    ${plan}
    ${decision}=    First Decision    ${tree}[data]
    ${step}=    Step That Writes    one.txt    better
    ${done}=    Agents    0    plan    correct    --yes    --mode    revert    --guidance    better
    ...    --step-file    ${step}    ${decision}
    Should Be Equal As Integers    ${done}[data][attempt]    2
    ${sandbox}=    Sandbox Of    ${plan}
    ${one}=    Get File    ${sandbox}/one.txt
    Should Be Equal    ${one}    better
    File Should Exist    ${sandbox}/two.txt

A Decision Says Why
    ${plan}=    Executed    one.txt
    ${tree}=    Agents    0    plan    tree    ${plan}
    ${decision}=    First Decision    ${tree}[data]
    ${why}=    Agents    0    plan    explain    ${decision}
    Should Be Equal    ${why}[data][plan_id]    ${plan}
    Should Not Be Empty    ${why}[data][rationale]

Apply On A Branch Leaves The Checkout Alone
    ${commits}=    Commits In Project
    ${plan}=    Executed    one.txt
    ${done}=    Agents    0    plan    apply    --yes    --branch    agents/one    ${plan}
    Should Be Equal    ${done}[data][state]    applied
    ${after}=    Commits In Project
    Should Be Equal As Integers    ${after}    ${commits}
    File Should Not Exist    ${WORLD}[cwd]/one.txt

An Applied Plan Cannot Go Back
    ${plan}=    Executed    one.txt
    Agents    0    plan    apply    --yes    ${plan}
    ${refused}=    Agents    1    plan    rollback    --yes    ${plan}    start
    Should Be Equal    ${refused}[data][error][code]    plan-applied

A Cancelled Plan Runs No More
    ${plan}=    Use    one.txt
    Agents    0    plan    cancel    ${plan}
    ${refused}=    Agents    1    plan    execute    ${plan}
    Should Be Equal    ${refused}[data][error][code]    plan-cancelled

A Checkpoint By Hand Is Listed And Deleted
    ${plan}=    Executed    one.txt
    ${made}=    Agents    0    plan    checkpoint    create    --label    mine    ${plan}
    ${shown}=    Agents    0    plan    checkpoint    show    ${plan}    mine
    Should Be Equal    ${shown}[data][group_id]    ${made}[data][group_id]
    Agents    0    plan    checkpoint    create    --label    another    ${plan}
    Agents    0    plan    checkpoint    delete    --yes    ${plan}    mine
    ${gone}=    Agents    1    plan    checkpoint    show    ${plan}    mine
    Should Be Equal    ${gone}[data][error][code]    checkpoint-not-found

The Checkpoint That A Plan Stands On Is Not Deleted
    ${plan}=    Executed    one.txt
    ${status}=    Agents    0    plan    status    ${plan}
    ${refused}=    Agents    1    plan    checkpoint    delete    --yes    ${plan}    ${status}[data][last_checkpoint_id]
    Should Be Equal    ${refused}[data][error][code]    checkpoint-needed

Checkpoints Are Verified And Compared
    ${plan}=    Executed    one.txt
    ${verified}=    Agents    0    plan    checkpoint    verify    ${plan}
    Should Be Empty    ${verified}[data][damaged]
    ${compared}=    Agents    0    plan    checkpoint    diff    ${plan}    start    after file.write one.txt
    Should Be Equal    ${compared}[data][files][0][path]    one.txt
    Should Be Equal    ${compared}[data][plan_id]    ${plan}


*** Keywords ***
Executed
    [Documentation]    Makes and runs a plan that writes these files; gives back its id.
    [Arguments]    @{names}
    ${plan}=    Use    @{names}
    Agents    0    plan    execute    ${plan}
    RETURN    ${plan}

Reasons Of
    [Documentation]    Why each of its groups was made, without the first.
    [Arguments]    ${plan}
    ${listing}=    Agents    0    plan    checkpoint    list    ${plan}
    ${reasons}=    Reasons    ${listing}[data]
    RETURN    ${reasons}[1:]

Sandbox Of
    [Arguments]    ${plan}
    ${status}=    Agents    0    plan    status    ${plan}
    RETURN    ${status}[data][sandboxes][0][path]

Status In
    [Documentation]    What `plan status` prints of a plan that has run, which it names.
    [Arguments]    ${format}
    ${plan}=    Use    one.txt
    ${text}=    Printed    ${format}    plan    status    ${plan}
    Should Contain    ${text}    demo
    RETURN    ${text}

Printed
    [Arguments]    ${format}    @{words}
    ${command}=    The Command
    ${done}=    Run Process    ${command}    --format    ${format}    @{words}    &{WORLD}
    Should Be Equal As Integers    ${done.rc}    0    ${done.stderr}
    RETURN    ${done.stdout}
