*** Settings ***
Documentation       The installed command: how it exits, what it prints, and that it survives kill -9.
Resource            agents.resource
Test Setup          Make A World
Test Teardown       Clean Up
Suite Teardown      Remove Template


*** Test Cases ***
A Plan Runs And Can Be Rolled Back To Its Start
    ${plan}=    Use    one.txt    two.txt
    ${done}=    Agents    0    plan    execute    ${plan}
    Should Be Equal    ${done}[data][state]    complete
    ${status}=    Agents    0    plan    status    ${plan}
    Should Not Be Equal    ${status}[data][last_checkpoint_id]    ${None}
    ${sandbox}=    Set Variable    ${status}[data][sandboxes][0][path]
    File Should Exist    ${sandbox}/two.txt
    ${listing}=    Agents    0    plan    checkpoint    list    ${plan}
    ${groups}=    Group Ids    ${listing}[data]
    Length Should Be    ${groups}    7
    ${back}=    Agents    0    plan    rollback    --yes    ${plan}    ${groups}[0]
    Should Be Equal    ${back}[command]    plan rollback
    Should Be Equal    ${back}[messages][0]    Rollback complete
    Should Be Equal    ${back}[data][post_rollback_state][state]    queued (awaiting input)
    File Should Not Exist    ${sandbox}/one.txt
    File Should Not Exist    ${sandbox}/two.txt

Only Apply Touches The Project
    ${before}=    Project Fingerprint
    ${commits}=    Commits In Project
    ${plan}=    Use    one.txt
    Agents    0    plan    execute    ${plan}
    Agents    0    plan    diff    ${plan}
    ${now}=    Project Fingerprint
    Should Be Equal    ${now}    ${before}
    Agents    0    plan    apply    --yes    ${plan}
    ${after}=    Commits In Project
    Should Be Equal As Integers    ${after}    ${commits + 1}
    File Should Exist    ${WORLD}[cwd]/one.txt

A Failing Step Exits With 1 And Says What To Do
    ${file}=    Action That Fails
    ${used}=    Agents    0    plan    use    ${file}
    ${plan}=    Set Variable    ${used}[data][plan_id]
    ${failed}=    Agents    1    plan    execute    ${plan}
    Should Be Equal    ${failed}[data][error][code]    step-failed
    Should Contain    ${failed}[data][error][hint]    agents plan errors ${plan}
    ${errors}=    Agents    0    plan    errors    ${plan}
    Should Contain    ${errors}[data][next_steps][0]    agents plan resume ${plan}

A Wrong Call Exits With 2
    Agents    2    plan    no-such-command
    ${plan}=    Use    one.txt
    Agents    0    plan    execute    ${plan}
    Agents    2    plan    rollback
    ${asked}=    Agents    2    plan    rollback    ${plan}    start
    Should Be Equal    ${asked}[data][error][code]    confirmation-needed

Without A Terminal The Answer Is Plain And Errors Go To Stderr
    ${command}=    The Command
    ${good}=    Run Process    ${command}    plan    list    &{WORLD}
    Should Be Equal As Integers    ${good.rc}    0
    Should Contain    ${good.stdout}    Plans
    Should Be Empty    ${good.stderr}
    ${bad}=    Run Process    ${command}    plan    use    nothing.yaml    &{WORLD}
    Should Be Equal As Integers    ${bad.rc}    1
    Should Be Empty    ${bad.stdout}
    Should Contain    ${bad.stderr}    nothing.yaml
    Should Not Contain    ${bad.stderr}    Traceback

A Plan Survives Kill 9
    ${file}=    Action That Waits
    ${used}=    Agents    0    plan    use    ${file}
    ${plan}=    Set Variable    ${used}[data][plan_id]
    ${command}=    The Command
    ${process}=    Start Process    ${command}    plan    execute    ${plan}    &{WORLD}
    ${reached}=    Reached File
    Wait Until Created    ${reached}    timeout=20s
    Send Signal To Process    KILL    ${process}
    Wait For Process    ${process}
    Let It Go On
    Sleep    0.3s    what the killed process had started ends by itself
    ${status}=    Agents    0    plan    status    ${plan}
    Should Be Equal    ${status}[status]    warn
    Should Be Equal    ${status}[data][state]    processing
    Should Contain    ${status}[messages][0]    agents plan resume ${plan}
    ${done}=    Agents    0    plan    resume    ${plan}
    Should Be Equal    ${done}[data][state]    complete
    ${half}=    Get File    ${status}[data][sandboxes][0][path]/half.txt
    Should Be Equal    ${half}    half\n


The Doctor Mends What Kill 9 Left
    ${file}=    Action That Waits
    ${used}=    Agents    0    plan    use    ${file}
    ${plan}=    Set Variable    ${used}[data][plan_id]
    ${command}=    The Command
    ${process}=    Start Process    ${command}    plan    execute    ${plan}    &{WORLD}
    ${reached}=    Reached File
    Wait Until Created    ${reached}    timeout=20s
    Send Signal To Process    KILL    ${process}
    Wait For Process    ${process}
    ${ill}=    Agents    1    doctor
    Should Be Equal    ${ill}[data][healthy]    ${False}
    ${mended}=    Agents    0    doctor    --fix    --yes
    Should Be Equal    ${mended}[data][healthy]    ${True}
    ${status}=    Agents    0    plan    status    ${plan}
    Should Be Equal    ${status}[data][state]    queued
    File Should Not Exist    ${status}[data][sandboxes][0][path]/half.txt
    Let It Go On
    ${done}=    Agents    0    plan    resume    ${plan}
    Should Be Equal    ${done}[data][state]    complete

A Dry Run Changes Nothing And A Single File Comes Back
    ${plan}=    Use    one.txt    two.txt
    Agents    0    plan    execute    ${plan}
    ${status}=    Agents    0    plan    status    ${plan}
    ${sandbox}=    Set Variable    ${status}[data][sandboxes][0][path]
    ${told}=    Agents    0    plan    rollback    --dry-run    ${plan}    start
    Should Be Equal    ${told}[data][dry_run]    ${True}
    File Should Exist    ${sandbox}/one.txt
    Agents    0    plan    rollback    --yes    --only    two.txt    ${plan}    start
    File Should Exist    ${sandbox}/one.txt
    File Should Not Exist    ${sandbox}/two.txt
    ${again}=    Agents    0    plan    status    ${plan}
    Should Be Equal    ${again}[data][state]    complete
